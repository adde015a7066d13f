package histories

import "testing"

// TestFound plays what histories have found, shrunk: it keeps that mended.
func TestFound(t *testing.T) {
	for name, h := range found() {
		t.Run(name, func(t *testing.T) { play(t, h) })
	}
}

func found() map[string]history {
	return map[string]history{
		"suspended before a cluster has its order, with nothing chosen": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 5, Do: "label", N: 2}, {Do: "suspend", N: 1}, {Wait: 2, Luck: 80658},
		}},
		"not listed for a moment": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6}, {Do: "hide", S: "c1", N: 14}, {Wait: 3},
		}},
		"not listed for a moment, suspended": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "hide", S: "c4", N: 12}, {Do: "suspend", N: 1}, {Wait: 2},
		}},
		"a label is lost, and then the placement edited": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "create"}, {Wait: 6, Do: "exclude", S: "c4"}, {Do: "label off", S: "c1"}, {Wait: 2, Do: "exclude"},
		}},
		"a removal is held, and then the placement edited": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "create"}, {Wait: 20, Do: "label off", S: "c1"}, {Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Do: "label off", S: "c4"}, {Wait: 60, Do: "exclude", S: "c9"}, {Wait: 10},
		}},
		"an edit takes a cluster out that failover keeps": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "failover", S: "Graceful", N: 30}, {Wait: 5}, {Do: "names", S: "c1 c3"}, {Do: "replicas", N: 3},
		}},
		"two clusters join, one after the other": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "replicas", N: 3}, {Wait: 2}, {Do: "label", N: 1}, {Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Do: "label off", S: "c4"}, {Wait: 5, Do: "label on", S: "c2"}, {Do: "label on", S: "c3"}, {Do: "label on", S: "c4"}, {Wait: 3, Luck: 2},
		}},
		"suspended together with an edit of the placement": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 8, Luck: 1555, Do: "exclude", S: "c1"}, {Wait: 3, Luck: 79532, Do: "suspend", N: 1}, {Wait: 1, Luck: 2},
		}},
		"a cluster that an edit left nothing joins": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label", N: 1}, {Wait: 4, Do: "weights", S: "c2=3"}, {Wait: 1}, {Do: "divided", N: 1}, {Do: "label off", S: "c3"},
			{Wait: 6}, {Do: "label on", S: "c3"}, {Wait: 1, Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
		}},
		"fewer replicas than clusters, by capacity": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "prefer", S: "AvailableCapacity"}, {Wait: 5, Do: "replicas", N: 2},
		}},
		"a scale as a hand-over begins": {Clusters: 1, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 2}, {Do: "replicas", N: 5}, {Wait: 3, Do: "backend", S: "ocm"}, {Wait: 1, Do: "replicas", N: 6},
		}},
		"most of what runs leaves after other clusters have joined": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "replicas", N: 8}, {Do: "create"}, {Wait: 7}, {Do: "label", N: 1}, {Wait: 2, Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Wait: 31, Do: "confirm"}, {Wait: 3}, {Do: "label on", S: "c2"}, {Wait: 1, Do: "label on", S: "c3"}, {Wait: 1},
			{Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
		}},
		"a total of 0 after another cluster has joined": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label off", S: "c2"}, {Do: "label", N: 1}, {Wait: 9}, {Do: "label on", S: "c2"},
			{Wait: 4, Do: "label off", S: "c2"}, {Do: "replicas"},
		}},
		"a small scale between two clusters that go": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "names", S: "c1 c3 c4"}, {Do: "create"}, {Wait: 9}, {Do: "label off", S: "c1"},
			{Wait: 31, Do: "label off", S: "c4"}, {Wait: 17}, {Wait: 8, Do: "replicas", N: 5},
		}},
		"paused when zero is decided and not carried out": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "replicas"}, {Wait: 1}, {Do: "paused", S: "c1"}, {Do: "replicas", N: 5},
		}},
		"paused before the first orders are seen": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "backend", S: "ocm"}, {Do: "create"}, {Wait: 5, Do: "paused", S: "c1 c3"}, {Wait: 2, Luck: 91409},
		}},
		"suspended while what is being left is not listed": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 7, Do: "hide", S: "c1", N: 11}, {Do: "names", S: "c2 c3"}, {Wait: 5, Luck: 54552, Do: "suspend", N: 1}, {Wait: 1, Luck: 81229},
		}},
		"suspended while a cluster that the edit before took out waits for its order": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 9, Luck: 2, Do: "own", S: "c1", N: 5}, {Do: "suspend", N: 1}, {Wait: 3, Luck: 2, Do: "replicas", N: 7}, {Wait: 1, Luck: 58003},
		}},
		"a cluster that is given nothing is let go of before the others are taken over": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "adopt", N: 1}, {Do: "weights", S: "c1=2 c2=1"}, {Do: "foreign", S: "c1", N: 3}, {Do: "create"}, {Wait: 30},
		}},
		"suspended while clusters are asked what they run, and fewer are chosen": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "adopt", N: 1}, {Do: "create"}, {Wait: 14, Luck: 1}, {Do: "suspend", N: 1}, {Do: "names", S: "c1 c4"}, {Do: "prefer", S: "Aggregated"},
		}},
		"a cluster loses its label while the first creation waits for approval": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "label", N: 3}, {Do: "approval", N: 1}, {Do: "create"}, {Wait: 4}, {Do: "label off", S: "c4"}, {Wait: 4},
			{Wait: 32, Do: "failover", S: "Graceful"}, {Wait: 1, Do: "approve change"},
		}},
		"a cluster is lost for a moment between two that go": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "failover", S: "Never"}, {Do: "label", N: 3}, {Do: "create"}, {Wait: 9}, {Do: "label off", S: "c3"}, {Wait: 33},
			{Do: "lose", S: "c1"}, {Do: "label off", S: "c2"}, {Wait: 1},
		}},
		"another backend before the first order is seen": {Clusters: 5, Workloads: 3, Steps: []step{
			{Do: "prefer", S: "Aggregated"}, {Do: "create"}, {Do: "groups", W: 1, S: "c3|c2 c1 c4 c5"}, {Do: "create", W: 1}, {Do: "create", W: 2},
			{Do: "backend", S: "ocm"}, {Wait: 3, Luck: 91771}, {Wait: 4, Luck: 43292, Do: "backend", S: "karmada"}, {Do: "label off", S: "c1"},
			{Wait: 10, Luck: 42061},
		}},
		"an order from a pause arrives after it": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "paused", S: "c1 c4"}, {Do: "replicas", N: 10}, {Do: "create"}, {Wait: 7, Do: "replicas", N: 5}, {Do: "lose", S: "c3"},
			{Do: "leave", S: "c4", N: 1}, {Wait: 42}, {Do: "adopt", N: 1}, {Wait: 1, Do: "paused"}, {Do: "weights", S: "c1=5 c3=4 c4=1 c5=1"}, {Wait: 2},
		}},
		"a cluster is back with what it ran, and another one goes": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label", N: 3}, {Wait: 5}, {Do: "leave", S: "c1"}, {Do: "number", N: 3}, {Wait: 1}, {Wait: 5, Do: "join", S: "c1"},
			{Do: "label off", S: "c2"},
		}},
		"what was to be left matches again before its backend chooses it": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "backend", S: "ocm"}, {Wait: 7, Do: "leave", S: "c1"}, {Do: "label", N: 1}, {Do: "label off", S: "c2"},
			{Do: "label off", S: "c3"}, {Do: "label off", S: "c4"}, {Wait: 61}, {Do: "label on", S: "c2"}, {Do: "label on", S: "c3"},
			{Wait: 1, Luck: 3, Do: "label on", S: "c4"}, {Wait: 6, Luck: 1},
		}},
		"fewer replicas than clusters, by room, with purge Graceful": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "failover", S: "Graceful"}, {Do: "create"}, {Do: "prefer", S: "AvailableCapacity"}, {Wait: 5, Do: "replicas", N: 1},
		}},
		"an edit takes a cluster out while it is not listed": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 28}, {Do: "hide", S: "c3", N: 17}, {Do: "names", S: "c1"}, {Wait: 15},
		}},
		"a hand-over of what a cluster refuses": {Clusters: 1, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "foreign", S: "c1", N: 4}, {Wait: 5}, {Do: "backend", S: "ocm"},
		}},
		"a hand-over there and back of what is not listed": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 5, Do: "hide", S: "c2", N: 17}, {Do: "backend", S: "ocm"}, {Wait: 11}, {Do: "backend", S: "karmada"},
		}},
		"a removal is held until another workload leaves room": {Clusters: 2, Workloads: 3, Steps: []step{
			{Do: "adopt", N: 1}, {Do: "create"}, {Do: "create", W: 1}, {Do: "names", W: 2, S: "c1"}, {Do: "create", W: 2},
			{Wait: 7, Luck: 71422, Do: "prefer", S: "Aggregated"}, {Wait: 2, Do: "delete", W: 2},
		}},
		"an edit that one pass has read and not recorded": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label", N: 3}, {Wait: 7, Do: "names", S: "c1 c2 c3 c4 c5"}, {Do: "label off", S: "c3"}, {Wait: 2, Luck: 74284},
		}},
		"most of what runs leaves one after the other": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "replicas", N: 3}, {Do: "label", N: 2}, {Wait: 9}, {Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Wait: 31, Do: "confirm"}, {Wait: 3, Do: "label on", S: "c2"}, {Wait: 1, Do: "label on", S: "c3"}, {Do: "label off", S: "c2"},
			{Wait: 1, Do: "label off", S: "c3"},
		}},
		"a take-over begins while an order that refuses it is on its way": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 2, Do: "foreign", S: "c4", N: 5}, {Wait: 3}, {Do: "adopt", N: 1},
		}},
		"a take-over that was held is not wanted any more": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "replicas", N: 12}, {Do: "create"}, {Wait: 7, Do: "replicas", N: 10}, {Do: "adopt", N: 1}, {Do: "backend", S: "ocm"},
			{Do: "leave", S: "c2", N: 1}, {Wait: 20, Do: "adopt"},
		}},
		"what an edit adds leaves before it runs": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "label", N: 3}, {Do: "create"}, {Do: "names", S: "c2"}, {Wait: 9}, {Do: "names"}, {Wait: 6, Luck: 58144}, {Do: "label off", S: "c2"},
		}},
		"most of what runs leaves while others come back": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 7}, {Do: "label", N: 1}, {Wait: 1}, {Wait: 1, Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
			{Wait: 31, Do: "confirm"}, {Wait: 5}, {Do: "label on", S: "c2"}, {Do: "label on", S: "c3"}, {Wait: 9, Luck: 1},
			{Do: "label off", S: "c2"}, {Wait: 1, Do: "label off", S: "c3"},
		}},
		"failover gives up a cluster of another group": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "failover", S: "Immediate", N: 30}, {Do: "suspend", N: 1}, {Do: "create"}, {Wait: 4, Do: "groups", S: "c2|c1"},
			{Do: "taint", S: "c1", N: 1},
		}},
		"a cluster comes back that an edit of labels does not choose": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label off", S: "c4"}, {Wait: 44, Do: "hide", S: "c4", N: 5}, {Do: "label off", S: "c3"},
			{Wait: 1, Do: "label", N: 3},
		}},
		"a cluster that has lost its label gets a number of its own": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "create"}, {Wait: 9, Do: "label off", S: "c3"}, {Wait: 3, Do: "own", S: "c3", N: 5}, {Wait: 5},
		}},
		"a number of its own for a cluster that an edit took out while it was paused": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 9, Do: "paused", S: "c3"}, {Do: "label off", S: "c3"}, {Wait: 3, Do: "label", N: 1}, {Do: "own", S: "c3", N: 5},
			{Wait: 3, Do: "paused"}, {Wait: 9},
		}},
		"divided while a removal is held, with a number of its own": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "divided"}, {Do: "label", N: 1}, {Do: "own", S: "c4", N: 2}, {Do: "create"}, {Wait: 9, Do: "label off", S: "c1"},
			{Do: "label off", S: "c2"}, {Do: "label off", S: "c3"}, {Wait: 40, Do: "divided", N: 1}, {Wait: 9, Do: "own", S: "c4", N: 4}, {Wait: 9},
		}},
		"a number of its own of none, and then a pause": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6}, {Do: "own", S: "c3"}, {Wait: 1, Do: "paused", S: "c3"},
		}},
		"a cluster is not listed while labels are edited": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label off", S: "c3"}, {Wait: 45, Do: "label", N: 1}, {Do: "hide", S: "c3", N: 14}, {Wait: 5},
		}},
		"two changes of backend that cannot be made": {Clusters: 4, Workloads: 3, AtOnce: 1, Steps: []step{
			{Do: "create"}, {Do: "create", W: 2}, {Wait: 7, Do: "backend", W: 2, S: "ocm"}, {Do: "leave", S: "c4", N: 2},
			{Wait: 1, Luck: 2, Do: "backend", S: "ocm"},
		}},
		"an edit while a cluster leaves": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 7}, {Do: "label", N: 2}, {Wait: 2, Do: "label off", S: "c2"}, {Wait: 1, Do: "label off", S: "c3"},
			{Wait: 30, Do: "names", S: "c1 c2 c3"},
		}},
		"a scale by room in a hand-over of which a cluster has left": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "prefer", S: "AvailableCapacity"}, {Do: "create"}, {Wait: 9, Do: "backend", S: "ocm"}, {Wait: 1, Do: "leave", S: "c2"},
			{Wait: 2, Do: "replicas", N: 8},
		}},
		"a scale by room in a hand-over of which all clusters have left": {Clusters: 1, Workloads: 1, Steps: []step{
			{Do: "prefer", S: "AvailableCapacity"}, {Do: "create"}, {Wait: 9, Do: "backend", S: "ocm"}, {Wait: 1, Do: "leave", S: "c1"},
			{Wait: 2, Do: "replicas", N: 8},
		}},
		"a scale by weight in a hand-over while neither backend lists a cluster": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "backend", S: "ocm"}, {Wait: 1}, {Do: "hide", S: "c2", N: 14}, {Do: "hide", W: 1, S: "c2", N: 17},
			{Do: "replicas", N: 11}, {Wait: 1},
		}},
		"a cluster comes back that the old backend would go on with, in a hand-over": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 7, Do: "backend", S: "ocm"}, {Do: "fail", N: 4}, {Wait: 5, Do: "leave", S: "c3"},
			{Wait: 6, Luck: 81627, Do: "join", S: "c3"},
		}},
		"a cluster comes back as the old backend lets go": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "backend", S: "ocm"}, {Wait: 7, Do: "leave", S: "c1"}, {Wait: 3}, {Do: "join", S: "c1"},
		}},
		"a cluster comes back before the old backend has dropped its name": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 8}, {Do: "backend", S: "ocm"}, {Wait: 1, Do: "leave", S: "c2", N: 1},
			{Wait: 8, Luck: 1, Do: "replicas", N: 8}, {Do: "join", S: "c2"}, {Wait: 4, Luck: 29319},
		}},
		"a cluster that is being left leaves, and comes back before the old backend has dropped its name": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 8}, {Do: "label off", S: "c2"}, {Do: "backend", S: "ocm"}, {Wait: 3, Luck: 62522, Do: "leave", S: "c2", N: 1},
			{Wait: 1, Luck: 2}, {Wait: 3, Do: "join", S: "c2"},
		}},
		"the only cluster of a hand-over leaves the new backend": {Clusters: 1, Workloads: 1, Steps: []step{
			{Do: "backend", S: "ocm"}, {Do: "create"}, {Wait: 5}, {Do: "backend", S: "karmada"}, {Wait: 5}, {Do: "leave", S: "c1", N: 1},
		}},
		"the old backend has a cluster again as it lets go": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "groups", S: "c5|c1 c2 c3 c4"}, {Do: "create"}, {Wait: 4}, {Do: "backend", S: "ocm"}, {Wait: 8, Luck: 3, Do: "leave", S: "c5"},
			{Wait: 3, Luck: 49055, Do: "join", S: "c5"},
		}},
		"a cluster that is gone comes back for as long as one pass that is cut off": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label", N: 1}, {Wait: 9, Do: "leave", S: "c2"}, {Wait: 3, Do: "die", N: 1}, {Wait: 1, Do: "join", S: "c2"},
			{Wait: 1, Do: "label off", S: "c2"},
		}},
		"paused long before an edit chooses by a label that it has lost": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 4, Do: "paused", S: "c1 c2 c3 c4"}, {Do: "label off", S: "c2"}, {Wait: 38, Do: "label", N: 2},
			{Wait: 2, Do: "paused"},
		}},
		"paused before it has what it was given beside another that is paused": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "paused", S: "c3"}, {Do: "create"}, {Wait: 1, Do: "backend", S: "ocm"}, {Wait: 3, Do: "paused", S: "c2"},
		}},
		"a cluster leaves and is back between two passes": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "replicas", N: 2}, {Wait: 2, Luck: 2}, {Wait: 9, Do: "lose", S: "c5"},
			{Wait: 3, Do: "leave", S: "c5", N: 1}, {Wait: 3, Luck: 81262, Do: "join", S: "c5"},
		}},
		"a scale by weight in a hand-over of which the first cluster has left": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6, Do: "backend", S: "ocm"}, {Wait: 1, Do: "leave", S: "c1"}, {Do: "replicas", N: 12},
		}},
		"neither backend lists a cluster with overrides for a moment, in a hand-over": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "over", S: "c2", N: 7}, {Do: "create"}, {Wait: 9, Do: "backend", S: "ocm"}, {Wait: 9, Do: "hide", S: "c2", N: 9},
			{Do: "hide", W: 1, S: "c2", N: 9}, {Wait: 2},
		}},
		"the management cluster is rebuilt while a cluster that is lost lets go last": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6}, {Do: "backend", S: "ocm"}, {Wait: 1}, {Wait: 9, Do: "lose", S: "c2"}, {Wait: 3, Do: "rebuilt"},
		}},
		"a cluster is back with what it ran and gets more, as all others go": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "label", N: 2}, {Do: "backend", S: "ocm"}, {Wait: 5, Do: "leave", S: "c1"}, {Wait: 2, Luck: 1, Do: "replicas", N: 4},
			{Wait: 2, Do: "join", S: "c1"}, {Do: "label off", S: "c2"}, {Do: "label off", S: "c3"},
		}},
		"the management cluster is rebuilt between two clusters that go": {Clusters: 3, Workloads: 2, Steps: []step{
			{Do: "create"}, {Wait: 9}, {Do: "label", N: 3}, {Do: "label off", S: "c3"}, {Wait: 37, Luck: 70769}, {Do: "rebuilt"},
			{Wait: 2, Do: "label off", S: "c2"},
		}},
		"failover is edited away before it gives a cluster up, and another one goes": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "label", N: 3}, {Do: "create"}, {Do: "failover", S: "Graceful", N: 30}, {Wait: 9, Do: "lose", S: "c2"}, {Wait: 1, Do: "failover"},
			{Wait: 1, Do: "label off", S: "c1"}, {Wait: 30},
		}},
		"a cluster loses its label in the moment of an approval": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 9, Do: "approval", N: 1}, {Do: "exclude", S: "c4"}, {Do: "label", N: 1}, {Wait: 9, Do: "approve change"},
			{Wait: 1, Do: "label off", S: "c3"}, {Wait: 5},
		}},
		"a removal is confirmed before it names what has just joined": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "create"}, {Do: "replicas", N: 10}, {Do: "own", S: "c5", N: 5}, {Do: "label", N: 1}, {Do: "label off", S: "c2"},
			{Do: "label off", S: "c3"}, {Do: "label off", S: "c4"}, {Do: "label off", S: "c5"}, {Wait: 9}, {Do: "label on", S: "c2"}, {Wait: 4},
			{Do: "label on", S: "c3"}, {Do: "label on", S: "c4"}, {Do: "label on", S: "c5"}, {Wait: 1, Do: "confirm"},
		}},
		"most of what runs goes after an approval, and what it has added stays for a moment": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "weights", S: "c1=1 c2=1 c3=3 c4=2"}, {Do: "approval", N: 1}, {Do: "create"}, {Wait: 4}, {Do: "approve change"},
			{Wait: 6, Do: "lose", S: "c1"}, {Do: "weights", S: "c1=4 c2=2 c3=3 c4=1 c5=2"}, {Wait: 1}, {Do: "label", N: 1},
			{Do: "label off", S: "c2"}, {Wait: 3, Do: "approve change"}, {Do: "label off", S: "c3"}, {Wait: 1, Luck: 1, Do: "label off", S: "c4"},
			{Wait: 3}, {Do: "label off", S: "c5"}, {Wait: 29},
		}},
		"clusters lose their labels before and after an approval of another backend": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "approval", N: 1}, {Do: "create"}, {Wait: 4}, {Do: "approve change"}, {Wait: 6, Do: "label off", S: "c1"},
			{Do: "backend", S: "ocm"}, {Do: "label", N: 1}, {Wait: 1}, {Do: "approve change"}, {Wait: 2, Do: "label off", S: "c3"},
			{Do: "label off", S: "c5"},
		}},
		"half of what runs goes, and what an edit has raised stays without its label": {Clusters: 5, Workloads: 1, Steps: []step{
			{Do: "label", N: 1}, {Do: "create"}, {Wait: 9}, {Do: "label off", S: "c1"}, {Wait: 1, Do: "names", S: "c1 c4"}, {Wait: 13, Luck: 1},
			{Do: "divided"}, {Do: "label off", S: "c4"}, {Do: "label off", S: "c5"}, {Wait: 3, Luck: 2},
		}},
		"the management cluster is rebuilt, and the newer version is asked for that a cluster does not serve": {Clusters: 1, Workloads: 1, Steps: []step{
			{Do: "older", S: "c1"}, {Do: "create"}, {Wait: 6, Do: "version", N: 1}, {Do: "rebuilt"}, {Wait: 6},
		}},
		"the newer version is asked for right after a creation that a cluster does not serve": {Clusters: 2, Workloads: 1, Steps: []step{
			{Do: "older", S: "c1"}, {Do: "create"}, {Wait: 5, Do: "version", N: 1}, {Wait: 8, Luck: 355},
		}},
		"the management cluster is rebuilt while the workload moves, and the spec asks for fewer clusters": {Clusters: 3, Workloads: 1, Steps: []step{
			{Do: "backend", S: "ocm"}, {Do: "create"}, {Wait: 5, Do: "backend", S: "karmada"}, {Wait: 2, Do: "names", S: "c1"}, {Wait: 2, Do: "rebuilt"},
		}},
		"the management cluster is rebuilt, and the spec asks for one cluster, with failover that gives the others up later": {Clusters: 4, Workloads: 1, Steps: []step{
			{Do: "create"}, {Wait: 6}, {Do: "rebuilt"}, {Do: "failover", S: "Graceful"}, {Do: "number", N: 1},
		}},
	}
}
