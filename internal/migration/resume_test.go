package migration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestResume (laws 1 and 5): a hand-over whose record is gone goes on from what both backends hold. Nobody who may write is joined by another.
func TestResume(t *testing.T) {
	const (
		none     = backends.PresenceAbsent
		active   = backends.PresenceActive
		released = backends.PresenceReleased
		leaving  = backends.PresenceLeaving
		removing = backends.PresenceRemoving
	)
	shadowing, releasing := v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseReleasing
	for name, test := range map[string]struct {
		// source and target are how each has the clusters c1 and c2.
		source, target [2]backends.Presence
		back           bool
		phase          v1alpha1.MigrationPhase
		// adopts says of each cluster whether the source is to take it over, and not just to go on with it.
		adopts string
		// unwritten has the source not say of any cluster that it wrote the member object.
		unwritten bool
	}{
		"the target begins to look":      {[2]backends.Presence{active, active}, [2]backends.Presence{released, none}, false, shadowing, "c1:no c2:no", false},
		"the target looks":               {[2]backends.Presence{active, active}, [2]backends.Presence{released, released}, false, shadowing, "c1:no c2:no", false},
		"the target has not confirmed":   {[2]backends.Presence{active, active}, [2]backends.Presence{active, released}, false, shadowing, "c1:yes c2:no", false},
		"one is released":                {[2]backends.Presence{released, active}, [2]backends.Presence{released, released}, false, shadowing, "c1:yes c2:no", false},
		"one is taken over":              {[2]backends.Presence{released, active}, [2]backends.Presence{active, released}, false, shadowing, "c1:yes c2:no", false},
		"all are taken over":             {[2]backends.Presence{released, released}, [2]backends.Presence{active, active}, false, releasing, "", false},
		"the source goes":                {[2]backends.Presence{leaving, none}, [2]backends.Presence{active, active}, false, releasing, "", false},
		"the source may still write one": {[2]backends.Presence{released, active}, [2]backends.Presence{active, active}, false, shadowing, "c1:yes c2:yes", false},
		"it goes back at its end":        {[2]backends.Presence{released, released}, [2]backends.Presence{active, active}, true, shadowing, "c1:yes c2:yes", false},
		"the source has not written it":  {[2]backends.Presence{active, active}, [2]backends.Presence{released, released}, false, shadowing, "c1:yes c2:yes", true},
		"what is removed is left out":    {[2]backends.Presence{active, removing}, [2]backends.Presence{released, none}, false, shadowing, "c1:no", false},
	} {
		holder := func(backend string, has [2]backends.Presence) Holder {
			h := Holder{Side: Side{Name: backend}}
			for i, p := range has {
				cluster := fmt.Sprintf("c%d", i+1)
				h.Fleet.Clusters = append(h.Fleet.Clusters, backends.Cluster{Name: backend + cluster, Identity: cluster})
				o := backends.ClusterObservation{Cluster: backend + cluster, Presence: p}
				if p == active && !test.unwritten {
					o.Applied = metav1.ConditionTrue
				}
				if p != none {
					h.Observed.Clusters = append(h.Observed.Clusters, o)
				}
			}
			return h
		}
		got := Interrupted{
			Source: holder("", test.source), Target: holder("t", test.target), Forward: !test.back, Now: time.Unix(0, 0),
		}.Resume()
		var adopts []string
		for _, c := range got.Clusters {
			if c.Phase != got.Phase || NameOnTarget(c) != "t"+c.Name || c.Wave == nil {
				t.Errorf("%s: %s is %+v", name, c.Name, c)
			}
			if got.Phase == shadowing {
				adopts = append(adopts, c.Name+map[bool]string{true: ":yes", false: ":no"}[c.Before != nil])
			}
		}
		if got.Phase != test.phase || strings.Join(adopts, " ") != test.adopts {
			t.Errorf("%s: %s, %v", name, got.Phase, adopts)
		}
		if got.Phase == shadowing && got.WaveStartedAt == nil {
			t.Errorf("%s: it does not say since when it waits", name)
		}
	}
}

// TestAHolderOwns: a backend that has a workload alone may write all of it; a released cluster tells of another backend.
func TestAHolderOwns(t *testing.T) {
	for presence, owns := range map[backends.Presence]bool{
		backends.PresenceActive: true, backends.PresenceRemoving: true, backends.PresenceReleased: false, backends.PresenceLeaving: false,
	} {
		h := Holder{Observed: backends.Observation{Clusters: []backends.ClusterObservation{{Cluster: "c1"}, {Cluster: "c2", Presence: presence}}}}
		if h.Owns() != owns {
			t.Errorf("%q: %v", presence, h.Owns())
		}
	}
}
