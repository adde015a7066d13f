package override

import "strconv"

// place is a field path in a manifest. The token anyElement stands for every element of a list.
type place []string

// anyElement is a token that matches every other one. A map key of that name is a coarser place than meant, which
// Validate can live with.
const anyElement = "*"

// at returns the place below a path. It never shares memory with path.
func at(path []string, tokens ...string) place {
	return append(append(make(place, 0, len(path)+len(tokens)), path...), tokens...)
}

// inContainers returns the places of one field in all containers and init containers.
func inContainers(podTemplate []string, field string) []place {
	return []place{
		at(podTemplate, "spec", "containers", anyElement, field),
		at(podTemplate, "spec", "initContainers", anyElement, field),
	}
}

// meets tells whether one place is the other, or contains it.
func (p place) meets(q place) bool {
	for i := range min(len(p), len(q)) {
		if p[i] != q[i] && p[i] != anyElement && q[i] != anyElement {
			return false
		}
	}
	return true
}

func related(some, others []place) bool {
	for _, p := range some {
		for _, q := range others {
			if p.meets(q) {
				return true
			}
		}
	}
	return false
}

// written returns the place that a patch on a path may write: the whole list when the path ends in a list element,
// because adding and removing one moves the others.
func written(path place) place {
	last := len(path) - 1
	if last < 0 {
		return path
	}
	if _, err := strconv.Atoi(path[last]); err == nil || path[last] == "-" {
		return path[:last]
	}
	return path
}
