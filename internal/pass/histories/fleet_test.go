package histories

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// template is what makes a pod what it is.
type template struct{ Image, Env string }

// content is what a manifest says.
type content struct {
	template
	Replicas int
	// Newer is true when it is written in the newer of the kind's two versions.
	Newer bool
}

func (c content) String() string {
	return fmt.Sprintf("%d of %s/%s%s", c.Replicas, c.Image, c.Env, flag(c.Newer, " as the newer version"))
}

// object is a member object.
type object struct {
	content
	uid string
	// owner is the mark of the backend and FleetWorkload that have written it last; empty when it is nobody's of ours.
	owner mark
	// was is the UID of the FleetWorkload whose it was until that let go of it.
	was string
	// traces are backends whose labels are still on it.
	traces     map[string]bool
	revision   string
	generation int

	// What its controller has made of it: the generation that it has seen, and the pods.
	seen, ran, ready, updated int
	running                   template
}

// mark says whose a member object is.
type mark struct{ backend, uid string }

// advance lets the object's controller take a step: it sees a change, and a step later the pods are ready.
func (o *object) advance() bool {
	switch {
	case o.seen != o.generation:
		if o.running != o.template {
			o.ready, o.updated, o.running = 0, 0, o.template
		}
		o.seen, o.ran, o.ready, o.updated = o.generation, o.Replicas, min(o.ready, o.Replicas), min(o.updated, o.Replicas)
	case o.ready != o.Replicas || o.updated != o.Replicas:
		o.ready, o.updated = o.Replicas, o.Replicas
	default:
		return false
	}
	return true
}

// memberReport is what an agent has seen of a member object.
type memberReport struct {
	uid, revision                         string
	generation, seen, ran, ready, updated int
	content                               content
	traces                                string
}

func reportOn(o *object, backend string) memberReport {
	r := memberReport{
		uid: o.uid, revision: o.revision, generation: o.generation, seen: o.seen, ran: o.ran, ready: o.ready, updated: o.updated, content: o.content,
	}
	for _, of := range slices.Sorted(maps.Keys(o.traces)) {
		if of != backend {
			r.traces += of
		}
	}
	return r
}

// facts are what is true of a cluster, or what a backend believes.
type facts struct {
	Known bool
	Label bool
	// Taint is its effect; empty is none.
	Taint   string
	Tainted time.Time
	Ready   bool
	Since   time.Time
	// Older is true as long as the cluster serves nothing but the older version of the kind.
	Older bool
}

// cluster is a member cluster as it is.
type cluster struct {
	name      string
	label     bool
	taint     string
	reachable bool
	older     bool
	// joined and hidden are by backend: one it has left, or one that it does not list until a moment.
	left   map[string]bool
	hidden map[string]time.Time
	// objects are by the name of the workload.
	objects map[string]*object
}

func newCluster(name string) *cluster {
	return &cluster{
		name: name, label: true, reachable: true, left: map[string]bool{}, hidden: map[string]time.Time{}, objects: map[string]*object{},
	}
}
