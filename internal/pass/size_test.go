package pass

import (
	"cmp"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// mostBytes is what a whole object may have, and room what of it is left to a spec that is long: half of that where names share nothing, so that
// they cannot be packed.
const mostBytes, room = 256 << 10, 24 << 10

// crowd is a fleet of many clusters, as long-winded as can be.
type crowd struct {
	random         *rand.Rand
	names, targets []string
	uids           []string
	now            time.Time
}

// newCrowd has names of 63 characters that share nothing when they are random, and else look as people give them.
func newCrowd(clusters int, random bool) *crowd {
	c := &crowd{random: rand.New(rand.NewPCG(1, 2)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range clusters {
		name, target := c.name(), c.name()
		if !random {
			name = fmt.Sprintf("production-payments-eu-central-1-kubernetes-%s-%04d", strings.Repeat("a", 14), i)
			target = fmt.Sprintf("arn-aws-eks-eu-central-1-012345678901-cluster-%s-%04d", strings.Repeat("b", 12), i)
		}
		c.names, c.targets, c.uids = append(c.names, name), append(c.targets, target), append(c.uids, c.uid())
	}
	return c
}

func (c *crowd) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(c.random.Uint32())
	}
	return b
}

func (c *crowd) name() string {
	return strings.ToLower(base32.StdEncoding.EncodeToString(c.bytes(40)))[:63]
}

func (c *crowd) uid() string {
	h := hex.EncodeToString(c.bytes(16))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// words are a message as long as a backend makes them, another one each time.
func (c *crowd) words() string { return strings.Repeat(hex.EncodeToString(c.bytes(16))+" ", 40) }

func (c *crowd) placement() *v1alpha1.PlacementRecord {
	in := guard.In{
		Asked: guard.Asked{Clusters: strings.Repeat("c", 63), Division: strings.Repeat("d", 63), Replicas: 2_000_000_000, Divided: true},
		Next:  map[string]int32{}, Reports: map[string]int32{}, Chosen: c.names, MaxPercent: 50,
	}
	for i, name := range c.names {
		in.Next[name], in.Reports[name] = int32(1_000_000+i), int32(500_000+7*i)
	}
	record, _ := guard.Check(in)
	for i := range 64 {
		record.Companions = append(record.Companions, v1alpha1.WorkloadReference{
			APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Name: fmt.Sprintf("%s-%02d", strings.Repeat("n", 60), i),
		})
	}
	return &record
}

// report is what a backend says of cluster i.
func (c *crowd) report(i int, presence backends.Presence, message string) migration.Report {
	return migration.Report{
		Presence: presence, Rendered: true, Current: message == "", Asked: ptr.To(int32(1_000_000 + i)), Message: message,
		Evidence: v1alpha1.MigrationEvidence{
			UID: c.uids[i], PodRevision: fmt.Sprintf("%s-%010d", strings.Repeat("w", 240), i),
			Ready: ptr.To(int32(1_000_000 + i)), Restarts: ptr.To(int32(i)), Health: v1alpha1.HealthHealthy,
		},
	}
}

// reached is the record when the hand-over has come to a phase, with a full history. What the target says it says of every cluster.
func (c *crowd) reached(phase v1alpha1.MigrationPhase) v1alpha1.MigrationStatus {
	rec := v1alpha1.MigrationStatus{}
	for range 11 {
		rec = v1alpha1.MigrationStatus{
			From: strings.Repeat("f", 63), To: strings.Repeat("t", 63), Phase: v1alpha1.MigrationPhaseValidating,
			SpecRevision: strings.Repeat("s", 253), StartedAt: ptr.To(metav1.NewTime(c.now)), History: rec.History,
		}
		for i, name := range c.names {
			rec.Clusters = append(rec.Clusters, v1alpha1.MigrationClusterStatus{Name: name, TargetName: c.targets[i], Wave: ptr.To(int32(1))})
		}
		if len(rec.History) == 10 {
			return c.until(rec, phase)
		}
		rec = c.until(rec, v1alpha1.MigrationPhaseCompleted)
	}
	return rec
}

func (c *crowd) until(rec v1alpha1.MigrationStatus, phase v1alpha1.MigrationPhase) v1alpha1.MigrationStatus {
	in := migration.Input{
		Now: c.now, Forward: true, Waves: []migration.Wave{{Soak: time.Hour}}, Timeout: time.Hour, Clusters: map[string]migration.Pair{},
	}
	say := func(source, target backends.Presence, message bool) {
		for i, name := range c.names {
			words := ""
			if message {
				words = c.words()
			}
			in.Clusters[name] = migration.Pair{Source: c.report(i, source, ""), Target: c.report(i, target, words)}
		}
		rec, _ = migration.Decide(rec, in)
	}
	if phase == v1alpha1.MigrationPhaseValidating {
		d := &Decision{begins: &beginning{next: rec}}
		d.object(slices.Repeat([]string{c.words()}, 2000))
		return d.begins.next
	}
	say(backends.PresenceActive, backends.PresenceActive, false)
	if phase == v1alpha1.MigrationPhaseShadowing {
		say(backends.PresenceActive, backends.PresenceActive, true)
		return rec
	}
	say(backends.PresenceActive, backends.PresenceReleased, false)
	say(backends.PresenceReleased, backends.PresenceActive, phase == v1alpha1.MigrationPhaseHandingOver)
	switch phase {
	case v1alpha1.MigrationPhaseHandingOver:
		return rec
	case v1alpha1.MigrationPhaseVerifying:
		say(backends.PresenceReleased, backends.PresenceActive, true)
		return rec
	case v1alpha1.MigrationPhaseRollingBack:
		in.Forward = false
		say(backends.PresenceReleased, backends.PresenceActive, true)
		return rec
	}
	in.Now = in.Now.Add(time.Hour)
	say(backends.PresenceReleased, backends.PresenceActive, false)
	if phase == v1alpha1.MigrationPhaseReleasing {
		return rec
	}
	in.SourceGone = true
	say(backends.PresenceReleased, backends.PresenceActive, false)
	return rec
}

// status is that of a fleet in which every cluster complains.
func (c *crowd) status(phase v1alpha1.MigrationPhase) v1alpha1.FleetWorkloadStatus {
	m := c.reached(phase)
	facts := aggregate.Facts{
		Generation: 1 << 40, Now: metav1.NewTime(c.now), Revision: strings.Repeat("r", 63), Selector: strings.Repeat("s", 4096), Reported: true,
		Settled: true, Choice: []string{c.words()}, Waiting: c.words(), Notes: []string{c.words()},
		Other: &aggregate.Other{Name: strings.Repeat("b", 63), Moving: true, Marks: []string{c.words()}},
	}
	facts.Migrating = progressOf(&v1alpha1.FleetWorkload{}, m)
	for i, name := range c.names {
		n := ptr.To(int32(1_000_000 + i))
		facts.Reports = append(facts.Reports, aggregate.Report{
			Name: name, Target: true, Desired: n, Cluster: &backends.Cluster{Name: name, Ready: metav1.ConditionFalse, Message: c.words()},
			State: &interpreter.State{Desired: n, Replicas: n, Ready: n, Updated: n, Available: n, Health: v1alpha1.HealthDegraded, Message: c.words()},
			Observed: &backends.ClusterObservation{
				Cluster: name, Revision: strings.Repeat("r", 63), Applied: metav1.ConditionFalse, Message: c.words(), Current: true,
			},
		})
	}
	status := aggregate.Fleet(v1alpha1.FleetWorkloadStatus{}, facts)
	status.Backend, status.Placement, status.Migration = m.From, c.placement(), &m
	return status
}

func roundTrip(from, to any) error {
	raw, err := json.Marshal(from)
	return cmp.Or(err, apijson.Unmarshal(raw, to))
}

func sizeOf(t *testing.T, v any) int {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}

// TestAStatusFits: clusters with the longest names, each with another message, in every phase of a hand-over with a full history. Nothing that
// is decided by, or that a person may ask for, is lost on the way to the API server and back. When names are such that they cannot be packed,
// fewer rows are shown, those that need attention first, and the others are counted.
func TestAStatusFits(t *testing.T) {
	for _, fleet := range []struct {
		clusters int
		random   bool
		room     int
		rows     int
	}{{1000, false, room, 100}, {1000, true, room / 2, 10}, {70, false, room, 70}, {70, true, room, 70}} {
		for _, phase := range []v1alpha1.MigrationPhase{
			v1alpha1.MigrationPhaseValidating, v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseHandingOver,
			v1alpha1.MigrationPhaseVerifying, v1alpha1.MigrationPhaseRollingBack, v1alpha1.MigrationPhaseReleasing,
			v1alpha1.MigrationPhaseCompleted,
		} {
			status := newCrowd(fleet.clusters, fleet.random).status(phase)
			if got := status.Migration.Phase; got != phase && phase != v1alpha1.MigrationPhaseCompleted {
				t.Fatalf("it has come to %q instead of %s", got, phase)
			}
			stored, err := status.Pack()
			if err != nil {
				t.Fatal(err)
			}
			fw := moving(t).in.FleetWorkload
			fw.Status = *stored
			size := sizeOf(t, fw)
			t.Logf("%4d clusters, random names %-5v, %-12s %d bytes: rows %d, packed %d; unpacked: placement %d, migration %d, its history %d",
				fleet.clusters, fleet.random, phase, size, len(stored.Clusters), len(stored.Packed), sizeOf(t, status.Placement),
				sizeOf(t, status.Migration.Clusters), sizeOf(t, status.Migration.History))
			if size > mostBytes-fleet.room {
				t.Errorf("%d clusters, random names %v, %s: %d bytes are stored, %d fit", fleet.clusters, fleet.random, phase, size, mostBytes-fleet.room)
			}
			read := v1alpha1.FleetWorkloadStatus{}
			if err := roundTrip(stored, &read); err != nil {
				t.Fatal(err)
			}
			shown := len(read.Clusters)
			if shown < fleet.rows || shown+int(ptr.Deref(read.Truncated, 0)) != fleet.clusters || !equality.Semantic.DeepEqual(read.Clusters, status.Clusters[:shown]) {
				t.Errorf("%d clusters, random names %v, %s: %d rows, %v more", fleet.clusters, fleet.random, phase, shown, ptr.Deref(read.Truncated, 0))
			}
			read.Clusters, read.Truncated = status.Clusters, status.Truncated
			if read.Packed = ""; !equality.Semantic.DeepEqual(read, status) {
				t.Errorf("%d clusters, random names %v, %s: something is lost", fleet.clusters, fleet.random, phase)
			}
		}
	}
}
