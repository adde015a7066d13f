package backends

import "context"

// Fate is what becomes of a member object when its backend lets go of the cluster.
type Fate string

const (
	// FateRemoved means that it is deleted, and with a namespace or a CRD everything in it.
	FateRemoved Fate = "Removed"
	// FateLeft means that it stays, and nobody repairs or changes it any more.
	FateLeft Fate = "Left"
)

// Owner is the object on a backend's control plane by which the backend was told of a member object.
type Owner struct {
	Kind, Namespace, Name string
}

// Dependent is an object in a cluster that is there, or repaired, because a backend says so.
type Dependent struct {
	// Cluster by the backend's name of it.
	Cluster string
	// Kind, Namespace and Name of the member object.
	Kind, Namespace, Name string
	Owner                 Owner
	Fate                  Fate
	// Preserve says, for a person, what Preserve of the owner would write. It is empty when that cannot make the object stay.
	Preserve string
	// Own is true for what the backend brought for itself. It goes with the backend, as it should.
	Own bool
	// Note is what else is to be known, for a person.
	Note string
}

// Going are those of a kind, and of a name unless that is empty, that are deleted when the backend lets go of their cluster.
func Going(all []Dependent, kind, name string) (going []Dependent) {
	for _, d := range all {
		if d.Kind == kind && (name == "" || d.Name == name) && d.Fate == FateRemoved {
			going = append(going, d)
		}
	}
	return going
}

// Retirer looks through a whole backend that is to be switched off. It asks the API server, and uses no cache.
type Retirer interface {
	// Dependents lists all that depends on the backend, of FleetWorkloads and of everybody else. It reads only.
	Dependents(ctx context.Context) ([]Dependent, error)
	// Preserve has what an owner has brought to clusters stay there when the backend lets go of them. It returns before the backend
	// has taken that up: Dependents tells when it has.
	Preserve(ctx context.Context, owner Owner) error
}
