package histories

import "testing"

// TestFound plays what histories have found, shrunk. As long as the constant of known_test.go that each names is true the oracle looks
// away; afterwards they are what keeps it mended.
func TestFound(t *testing.T) {
	for name, h := range found() {
		t.Run(name, func(t *testing.T) { play(t, h) })
	}
}

func found() map[string]history {
	return map[string]history{
		"knownUnlisted: not listed for a moment": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6}, {Do: "hide", S: "c1", N: 14}, {Wait: 3},
		}},
		"knownUnlisted: not listed for a moment, suspended": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "hide", S: "c4", N: 12}, {Do: "suspend", N: 1}, {Wait: 2},
		}},
		"knownEdits: a label is lost, and then the placement edited": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "create"}, {Wait: 6, Do: "exclude", S: "c4"}, {Do: "label off", S: "c1"}, {Wait: 2, Do: "exclude"},
		}},
		"knownEdits: a removal is held, and then the placement edited": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "create"}, {Wait: 20, Do: "label off", S: "c1"}, {Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Do: "label off", S: "c4"}, {Wait: 60, Do: "exclude", S: "c9"}, {Wait: 10},
		}},
		"knownGraceful: an edit takes a cluster out that failover keeps": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "failover", S: "Graceful", N: 30}, {Wait: 5}, {Do: "names", S: "c1 c3"}, {Do: "replicas", N: 3},
		}},
		"knownJoined: two clusters join, one after the other": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "replicas", N: 3}, {Wait: 2}, {Do: "label", N: 1}, {Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Do: "label off", S: "c4"}, {Wait: 5, Do: "label on", S: "c2"}, {Do: "label on", S: "c3"}, {Do: "label on", S: "c4"}, {Wait: 3, Luck: 2},
		}},
		"knownUnsettled: suspended together with an edit of the placement": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 8, Luck: 1555, Do: "exclude", S: "c1"}, {Wait: 3, Luck: 79532, Do: "suspend", N: 1}, {Wait: 1, Luck: 2},
		}},
		"knownZero: a cluster that an edit left nothing joins": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label", N: 1}, {Wait: 4, Do: "weights", S: "c2=3"}, {Wait: 1}, {Do: "divided", N: 1}, {Do: "label off", S: "c3"},
			{Wait: 6}, {Do: "label on", S: "c3"}, {Wait: 1, Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
		}},
		"knownFlips: fewer replicas than clusters, by capacity": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "prefer", S: "AvailableCapacity"}, {Wait: 5, Do: "replicas", N: 2},
		}},
		"knownUndisturbed: a scale as a hand-over begins": {Clusters: 1, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 2}, {Do: "replicas", N: 5}, {Wait: 3, Do: "backend", S: "ocm"}, {Wait: 1, Do: "replicas", N: 6},
		}},
	}
}
