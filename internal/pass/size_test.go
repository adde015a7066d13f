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
	"github.com/fleetworkload/fleetworkload/internal/proposal"
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

// planned is a change that does something on each cluster, and with more companions than the status has room for.
func (c *crowd) planned() (p Planned) {
	actions := []v1alpha1.PlannedAction{
		v1alpha1.PlannedCreateOrAdopt, v1alpha1.PlannedAdopt, v1alpha1.PlannedUpdate, v1alpha1.PlannedScale, v1alpha1.PlannedRemove, v1alpha1.PlannedCreate,
	}
	for i, name := range c.names {
		n := ptr.To(int32(1_000_000 + i))
		p.Clusters = append(p.Clusters, v1alpha1.PlannedCluster{
			Name: name, Action: actions[i%len(actions)], Replicas: n, ReplicasBefore: n, Reason: v1alpha1.RemovalSpecChanged,
		})
	}
	for i := range 64 {
		row := plannedTo(v1alpha1.CompanionUpdate, v1alpha1.CompanionClusterPaused)
		row.WorkloadReference = v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: fmt.Sprintf("%s-%02d", strings.Repeat("n", 250), i)}
		row.Clusters, row.PlannedCompanion.Changes = c.names, []string{c.words(), c.words()}
		p.Companions = append(p.Companions, row)
	}
	return p
}

// change waits for approval, in the place of another one that was as long. None does during a hand-over.
func (c *crowd) change(t *testing.T, phase v1alpha1.MigrationPhase) *v1alpha1.ChangeStatus {
	t.Helper()
	if phase != v1alpha1.MigrationPhaseCompleted {
		return &v1alpha1.ChangeStatus{ApprovedHash: strings.Repeat("a", 16), Approved: strings.Repeat("b", 16)}
	}
	d, planned := waiting(t), c.planned()
	d.in.Planned = &planned
	d.record.change = &v1alpha1.ChangeStatus{
		ApprovedHash: strings.Repeat("a", 16), Approved: strings.Repeat("b", 16),
		Superseded: &v1alpha1.SupersededChange{Approval: strings.Repeat("c", 16), Reason: v1alpha1.SupersededOutcomeChanged, Message: planned.summary()},
	}
	if offer(t, d) == "" || d.record.change.Superseded == nil {
		t.Fatalf("the record is %+v", d.record.change)
	}
	return d.record.change
}

// proposal answers who has asked what the same comes to, with the longest annotation.
func (c *crowd) proposal(fw *v1alpha1.FleetWorkload) *v1alpha1.ProposalStatus {
	fw.Annotations = map[string]string{v1alpha1.AnnotationPropose: strings.Repeat("p", proposal.MostValue)}
	return Answered(fw, metav1.NewTime(c.now), func(string) v1alpha1.ProposalStatus { return c.planned().told(c.planned().summary()) })
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

// firstOf tells whether what is shown are the first rows of a list, and the others are counted.
func firstOf[T any](shown, all []T, shownMore, more *int32) bool {
	return len(shown) <= len(all) && equality.Semantic.DeepEqual(shown, all[:len(shown)]) &&
		len(shown)+int(ptr.Deref(shownMore, 0)) == len(all)+int(ptr.Deref(more, 0))
}

// checkRows wants the first rows of each list, as many of clusters as are given at least, and puts the others back.
func checkRows(t *testing.T, name string, read, whole *v1alpha1.FleetWorkloadStatus, least int) {
	t.Helper()
	if len(read.Clusters) < least || !firstOf(read.Clusters, whole.Clusters, read.Truncated, whole.Truncated) {
		t.Errorf("%s: %d rows of clusters, %v more", name, len(read.Clusters), ptr.Deref(read.Truncated, 0))
	}
	read.Clusters, read.Truncated = whole.Clusters, whole.Truncated
	asked, answer := read.Proposal, whole.Proposal
	if !firstOf(asked.Clusters, answer.Clusters, asked.Truncated, answer.Truncated) ||
		!firstOf(asked.Companions, answer.Companions, asked.CompanionsTruncated, answer.CompanionsTruncated) {
		t.Errorf("%s: the answer to a proposal has other rows: %+v", name, asked)
	}
	asked.Clusters, asked.Companions, asked.Truncated, asked.CompanionsTruncated = answer.Clusters, answer.Companions, answer.Truncated, answer.CompanionsTruncated
	waits, change := read.Change, whole.Change
	if !firstOf(waits.Clusters, change.Clusters, waits.Truncated, change.Truncated) ||
		!firstOf(waits.Companions, change.Companions, waits.CompanionsTruncated, change.CompanionsTruncated) {
		t.Errorf("%s: the change that waits has other rows: %+v", name, waits)
	}
	waits.Clusters, waits.Companions, waits.Truncated, waits.CompanionsTruncated = change.Clusters, change.Companions, change.Truncated, change.CompanionsTruncated
}

// TestAStatusFits: clusters with the longest names, each with another message, in every phase of a hand-over with a full history, with the answer to a
// proposal, and with a change that waits where one can. Nothing that is decided by, or that a person may ask for, is lost on the way to the API server
// and back. When names are such that they cannot be packed, fewer rows are shown, those that need attention first, and the others are counted.
func TestAStatusFits(t *testing.T) {
	for _, fleet := range []struct {
		clusters int
		random   bool
		room     int
		rows     int
	}{{1000, false, room, 100}, {1000, true, room / 2, 10}, {100, true, room, 100}, {70, true, room, 70}} {
		for _, phase := range []v1alpha1.MigrationPhase{
			v1alpha1.MigrationPhaseValidating, v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseHandingOver,
			v1alpha1.MigrationPhaseVerifying, v1alpha1.MigrationPhaseRollingBack, v1alpha1.MigrationPhaseReleasing,
			v1alpha1.MigrationPhaseCompleted,
		} {
			name := fmt.Sprintf("%d clusters, random names %v, %s", fleet.clusters, fleet.random, phase)
			crowd, fw := newCrowd(fleet.clusters, fleet.random), moving(t).in.FleetWorkload
			status := crowd.status(phase)
			if got := status.Migration.Phase; got != phase && phase != v1alpha1.MigrationPhaseCompleted {
				t.Fatalf("it has come to %q instead of %s", got, phase)
			}
			status.Proposal, status.Change = crowd.proposal(fw), crowd.change(t, phase)
			given := status.DeepCopy()
			stored, err := status.Pack()
			if err != nil {
				t.Fatal(err)
			}
			fw.Status = *stored
			size := sizeOf(t, fw) - proposal.MostValue
			t.Logf("%-60s %d bytes: rows %d, packed %d, proposal %d, change %d; unpacked: placement %d, migration %d, its history %d", name, size,
				len(stored.Clusters), len(stored.Packed), sizeOf(t, stored.Proposal), sizeOf(t, stored.Change),
				sizeOf(t, status.Placement), sizeOf(t, status.Migration.Clusters), sizeOf(t, status.Migration.History))
			if size > mostBytes-fleet.room {
				t.Errorf("%s: %d bytes are stored, %d fit", name, size, mostBytes-fleet.room)
			}
			read := v1alpha1.FleetWorkloadStatus{}
			if err := roundTrip(stored, &read); err != nil {
				t.Fatal(err)
			}
			if fleet.rows > 10 && (len(read.Proposal.Clusters) != mostPlanned || len(read.Change.Clusters) != len(given.Change.Clusters)) {
				t.Errorf("%s: rows of the proposal or of the change are taken off without need", name)
			}
			checkRows(t, name, &read, given, fleet.rows)
			if read.Packed = ""; !equality.Semantic.DeepEqual(read, *given) {
				t.Errorf("%s: something is lost", name)
			}
		}
	}
}

// TestAnAnnotationLeavesRoom: the longest proposal beside the longest status leaves a spec 1 MiB of the 1.5 that etcd takes.
func TestAnAnnotationLeavesRoom(t *testing.T) {
	const etcd, spec = 1536 << 10, 1 << 20
	if size := mostBytes + proposal.MostValue; size > etcd-spec {
		t.Errorf("they have %d bytes", size)
	}
}
