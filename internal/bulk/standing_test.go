package bulk

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type change = func(*v1alpha1.FleetWorkload)

// at is a FleetWorkload that rests on backend karmada, changed.
func at(name string, changes ...change) *v1alpha1.FleetWorkload {
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	fw.Spec.Backend, fw.Status.Backend, fw.Status.ObservedGeneration = "karmada", "karmada", ptr.To[int64](1)
	fw.Status.ClusterSummary = &v1alpha1.ClusterSummary{Total: ptr.To[int32](2)}
	for _, c := range changes {
		c(fw)
	}
	return fw
}

func onOCM(fw *v1alpha1.FleetWorkload)     { fw.Spec.Backend, fw.Status.Backend = "ocm", "ocm" }
func asked(fw *v1alpha1.FleetWorkload)     { fw.Spec.Backend = "ocm" }
func frozen(fw *v1alpha1.FleetWorkload)    { fw.Spec.Suspend = ptr.To(true) }
func unknown(fw *v1alpha1.FleetWorkload)   { fw.Status.Backend = "" }
func deleted(fw *v1alpha1.FleetWorkload)   { fw.DeletionTimestamp = &metav1.Time{Time: noon} }
func notLooked(fw *v1alpha1.FleetWorkload) { fw.Generation = 2 }

// moves is a migration in that phase, of two clusters.
func moves(from, to string, phase v1alpha1.MigrationPhase) change {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Migration = &v1alpha1.MigrationStatus{
			From: from, To: to, Phase: phase, Wave: ptr.To[int32](1), StartedAt: &metav1.Time{Time: noon.Add(-time.Minute)},
			Clusters: []v1alpha1.MigrationClusterStatus{{Name: "m1", Phase: phase}, {Name: "m2", Phase: v1alpha1.MigrationPhaseShadowing}},
		}
	}
}

func ended(from, to string, phase v1alpha1.MigrationPhase) change {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Migration = &v1alpha1.MigrationStatus{History: []v1alpha1.MigrationRecord{
			{From: from, To: to, Phase: phase, FinishedAt: metav1.Time{Time: noon}},
		}}
	}
}

func asks(fw *v1alpha1.FleetWorkload)  { fw.Status.Migration.Approval = "pass-wave-1-7" }
func fails(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.Failure = "cluster m1: gone" }
func unapproved(fw *v1alpha1.FleetWorkload) {
	fw.Status.Change = &v1alpha1.ChangeStatus{Approval: "5b2f8a7c90e1d346", Message: "Move on m1"}
}
func approved(fw *v1alpha1.FleetWorkload) {
	fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: "pass-wave-1-7"}
}

func stalls(reason string, since time.Time) change {
	return func(fw *v1alpha1.FleetWorkload) {
		meta.SetStatusCondition(&fw.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: "because", LastTransitionTime: metav1.Time{Time: since},
		})
	}
}

var toOCM = Rules{To: "ocm", AtOnce: 2, Patience: time.Minute}

func TestStand(t *testing.T) {
	shadowing := moves("karmada", "ocm", v1alpha1.MigrationPhaseShadowing)
	verifying := moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)
	validating := moves("karmada", "ocm", v1alpha1.MigrationPhaseValidating)
	back := moves("karmada", "ocm", v1alpha1.MigrationPhaseRollingBack)
	notPossible := v1alpha1.ReasonMigrationNotPossible
	for name, tc := range map[string]struct {
		fw      []change
		entry   entry
		want    State
		message string
	}{
		"at rest":                      {nil, entry{}, ToGo, ""},
		"another backend than karmada": {[]change{func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend, fw.Status.Backend = "k2", "k2" }}, entry{}, ToGo, ""},
		"there from the beginning":     {[]change{onOCM}, entry{already: true, tried: true}, AlreadyThere, ""},
		"arrived":                      {[]change{onOCM, ended("karmada", "ocm", v1alpha1.MigrationPhaseCompleted)}, entry{tried: true}, Moved, ""},
		"new, and will be there":       {[]change{unknown, asked}, entry{already: true}, AlreadyThere, ""},
		"new, and will be elsewhere":   {[]change{unknown}, entry{}, Skipped, "no backend has it yet"},
		"deleted":                      {[]change{deleted}, entry{}, Deleted, "being deleted"},
		"deleted on its way":           {[]change{asked, shadowing, deleted}, entry{tried: true}, Deleted, "being deleted"},
		"gone":                         {[]change{asked, shadowing}, entry{tried: true, gone: true}, Deleted, "deleted meanwhile"},
		"suspended":                    {[]change{frozen}, entry{}, Skipped, "spec.suspend is true"},
		"stalled":                      {[]change{stalls(v1alpha1.ReasonRemovalHeld, noon)}, entry{}, Skipped, "waits for a person: RemovalHeld: because"},
		"stalled by an older spec":     {[]change{stalls(v1alpha1.ReasonRemovalHeld, noon), notLooked}, entry{}, ToGo, ""},
		"paused on a cluster": {[]change{func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "m2"}, {Name: "m1", Paused: metav1.ConditionTrue}}
		}}, entry{}, Skipped, "spec.placement.paused: nothing changes hands while m1 runs it"},
		"refused":                           {nil, entry{refused: "forbidden"}, Failed, "forbidden"},
		"refused, and asked by another one": {[]change{asked}, entry{refused: "forbidden"}, UnderWay, ""},
		"moves elsewhere":                   {[]change{moves("karmada", "k2", v1alpha1.MigrationPhaseVerifying), func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "k2" }}, entry{}, Skipped, "from backend karmada to k2 is under way"},
		"is to move elsewhere":              {[]change{func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "k2" }}, entry{}, Skipped, "to k2 is to begin"},
		"was given up before it began":      {[]change{validating}, entry{}, ToGo, ""},
		"is turned round":                   {[]change{back}, entry{}, Skipped, "is being turned round"},
		"was turned round before":           {[]change{ended("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack)}, entry{}, Skipped, "move it by its name, or with --retry"},
		"came from there":                   {[]change{ended("ocm", "karmada", v1alpha1.MigrationPhaseCompleted)}, entry{}, ToGo, ""},
		"is turned round now":               {[]change{back}, entry{tried: true}, Failing, "spec.backend was set to karmada meanwhile"},
		"was turned round now":              {[]change{ended("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack)}, entry{tried: true}, Failed, "was turned round"},
		"was given up":                      {nil, entry{tried: true}, Failed, "GitOps"},
		"asked for":                         {[]change{asked, notLooked}, entry{tried: true}, UnderWay, ""},
		"begins":                            {[]change{asked, validating}, entry{tried: true}, UnderWay, ""},
		"on its way":                        {[]change{asked, verifying}, entry{tried: true}, UnderWay, ""},
		"releases":                          {[]change{onOCM, moves("karmada", "ocm", v1alpha1.MigrationPhaseReleasing)}, entry{tried: true}, UnderWay, ""},
		"waits for approval":                {[]change{asked, verifying, asks, stalls(v1alpha1.ReasonMigrationNeedsApproval, noon)}, entry{tried: true}, Waiting, "wave 1 has passed"},
		"waits for approval of the change":  {[]change{asked, unapproved}, entry{tried: true}, Waiting, "the change of spec.backend waits for approval: Move on m1"},
		"was approved":                      {[]change{asked, verifying, asks, approved, stalls(v1alpha1.ReasonMigrationNeedsApproval, noon.Add(-time.Hour))}, entry{tried: true}, UnderWay, "was approved"},
		"suspended on its way":              {[]change{asked, verifying, frozen}, entry{tried: true}, Waiting, "spec.suspend"},
		"failed, goes back":                 {[]change{asked, back, fails}, entry{tried: true}, Failing, "wave 1 failed: cluster m1: gone"},
		"failed":                            {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack), fails, asks}, entry{tried: true}, Failed, "wave 1 failed: cluster m1: gone"},
		"is tried again":                    {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack), fails, asks, approved}, entry{tried: true}, UnderWay, "was approved"},
		"not possible for a moment":         {[]change{asked, validating, stalls(notPossible, noon.Add(-59*time.Second))}, entry{tried: true}, UnderWay, "MigrationNotPossible: because"},
		"not possible for long":             {[]change{asked, validating, stalls(notPossible, noon.Add(-60*time.Second))}, entry{tried: true}, Failed, "MigrationNotPossible: because"},
		"not possible, says an older one":   {[]change{asked, validating, stalls(notPossible, noon.Add(-time.Hour)), notLooked}, entry{tried: true}, UnderWay, ""},
		"stalled longer than it is asked":   {[]change{asked, verifying, func(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.StartedAt.Time = noon }, stalls(notPossible, noon.Add(-time.Hour))}, entry{tried: true}, UnderWay, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.entry.FleetWorkload = at("web", tc.fw...)
			got := toOCM.stand(&tc.entry, noon)
			if got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s: %s", got.State, got.Message)
			}
		})
	}
	retry := toOCM
	retry.Retry = true
	e := &entry{Entry: Entry{FleetWorkload: at("web", ended("karmada", "ocm", v1alpha1.MigrationPhaseRolledBack))}}
	if got := retry.stand(e, noon); got.State != ToGo {
		t.Errorf("what was turned round is not tried again: %+v", got)
	}
	if e.tried = true; retry.stand(e, noon).State != Failed {
		t.Error("what was turned round now is tried again and again")
	}
}

// What one that goes on by itself waits for, as far as that is known.
func TestSaysWhatItWaitsFor(t *testing.T) {
	verifying := moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)
	clusterSays := func(message string) change {
		return func(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.Clusters[1].Message = message }
	}
	ready := func(status metav1.ConditionStatus) change {
		return func(fw *v1alpha1.FleetWorkload) {
			meta.SetStatusCondition(&fw.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionReady, Status: status, Reason: v1alpha1.ReasonBackendUnavailable, Message: "connection\n refused", LastTransitionTime: metav1.Time{Time: noon},
			})
		}
	}
	standsStill := func(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.FrozenSince = &metav1.Time{Time: noon} }
	notReady := ready(metav1.ConditionFalse)
	for name, tc := range map[string]struct {
		fw   []change
		want string
	}{
		"nothing is known":                   {[]change{asked, verifying}, ""},
		"a cluster":                          {[]change{asked, verifying, clusterSays("1 of 3 pods are ready"), notReady}, "cluster m2: 1 of 3 pods are ready"},
		"it is not ready, which is as usual": {[]change{asked, verifying, notReady}, ""},
		"a backend that cannot be reached":   {[]change{asked, verifying, standsStill, notReady}, "BackendUnavailable: connection refused"},
		"it has not begun to hand over":      {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseValidating), notReady}, "BackendUnavailable: connection refused"},
		"there is no migration yet":          {[]change{asked, notReady}, "BackendUnavailable: connection refused"},
		"it is ready":                        {[]change{asked, ready(metav1.ConditionTrue)}, ""},
		"the status is of an older spec":     {[]change{asked, notLooked, notReady}, ""},
	} {
		e := entry{Entry: Entry{FleetWorkload: at("web", tc.fw...)}, tried: true}
		if got := toOCM.stand(&e, noon); got.State != UnderWay || got.Message != tc.want {
			t.Errorf("%s: %s %q, want %q", name, got.State, got.Message, tc.want)
		}
	}
}

// When a migration began is what the operator says, if it speaks of this one; otherwise it is now.
func TestBegun(t *testing.T) {
	notSaid := func(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.StartedAt = nil }
	for name, tc := range map[string]struct {
		fw   []change
		want time.Time
	}{
		"the operator has not seen it": {[]change{asked, notLooked}, noon},
		"the operator says it":         {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)}, noon.Add(-time.Minute)},
		"the operator does not say it": {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying), notSaid}, noon},
		"the operator says another's":  {[]change{asked, moves("karmada", "k2", v1alpha1.MigrationPhaseVerifying)}, noon},
		"one is over":                  {[]change{asked, moves("karmada", "ocm", "")}, noon},
		"it has not begun":             {[]change{moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)}, time.Time{}},
	} {
		if got := New(toOCM, []*v1alpha1.FleetWorkload{at("web", tc.fw...)}, noon).All()[0].Begun; !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// How many clusters the backend has: all before and after, and while the migration goes on those that are verified or released.
func TestClustersOf(t *testing.T) {
	hand := func(to string, phases ...v1alpha1.MigrationPhase) change {
		return func(fw *v1alpha1.FleetWorkload) {
			moves("karmada", to, v1alpha1.MigrationPhaseVerifying)(fw)
			fw.Status.Migration.Clusters = nil
			for _, phase := range phases {
				fw.Status.Migration.Clusters = append(fw.Status.Migration.Clusters, v1alpha1.MigrationClusterStatus{Phase: phase})
			}
		}
	}
	shadowing, verifying, releasing := v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseVerifying, v1alpha1.MigrationPhaseReleasing
	for name, tc := range map[string]struct {
		fw              []change
		all, handedOver int
	}{
		"at rest":                  {nil, 2, 0},
		"there":                    {[]change{onOCM}, 2, 2},
		"its size is not known":    {[]change{func(fw *v1alpha1.FleetWorkload) { fw.Status.ClusterSummary = nil }}, 0, 0},
		"none yet":                 {[]change{asked, hand("ocm", shadowing, shadowing, shadowing)}, 3, 0},
		"one is verified":          {[]change{asked, hand("ocm", verifying, shadowing, shadowing)}, 3, 1},
		"one of them is released":  {[]change{asked, hand("ocm", verifying, releasing, shadowing)}, 3, 2},
		"handed over to elsewhere": {[]change{hand("k2", verifying, releasing, shadowing)}, 3, 0},
	} {
		if all, handedOver := clustersOf(at("web", tc.fw...), "ocm"); all != tc.all || handedOver != tc.handedOver {
			t.Errorf("%s: %d of %d, want %d of %d", name, handedOver, all, tc.handedOver, tc.all)
		}
	}
}

func TestIsOf(t *testing.T) {
	completed := ended("karmada", "ocm", v1alpha1.MigrationPhaseCompleted)
	for name, tc := range map[string]struct {
		fw      []change
		backend string
		want    bool
	}{
		"it has it":              {nil, "karmada", true},
		"another one has it":     {nil, "k2", false},
		"it is leaving":          {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)}, "karmada", true},
		"it is being released":   {[]change{onOCM, moves("karmada", "ocm", v1alpha1.MigrationPhaseReleasing)}, "karmada", true},
		"another one is left":    {[]change{asked, moves("karmada", "ocm", v1alpha1.MigrationPhaseVerifying)}, "k2", false},
		"it has left":            {[]change{onOCM, completed}, "karmada", true},
		"it never was there":     {[]change{onOCM}, "karmada", false},
		"it left for elsewhere":  {[]change{onOCM, ended("karmada", "k2", v1alpha1.MigrationPhaseCompleted)}, "karmada", false},
		"nobody has it, or will": {[]change{unknown}, "karmada", false},
	} {
		if got := IsOf(at("web", tc.fw...), tc.backend, "ocm"); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestSort(t *testing.T) {
	sized := func(name string, clusters, replicas int32) *v1alpha1.FleetWorkload {
		return at(name, func(fw *v1alpha1.FleetWorkload) {
			fw.Status.ClusterSummary.Total, fw.Status.DesiredReplicas = &clusters, &replicas
		})
	}
	all := []*v1alpha1.FleetWorkload{
		sized("d", 1, 9), at("c", func(fw *v1alpha1.FleetWorkload) { fw.Status.ClusterSummary = nil }), sized("b", 3, 1), sized("e", 1, 2), sized("a", 1, 9),
		at("z", func(fw *v1alpha1.FleetWorkload) { fw.Namespace = "app" }),
	}
	for order, want := range map[Order]string{OrderName: "z a b c d e", OrderSize: "e a d z b c"} {
		Sort(all, order)
		var names []string
		for _, fw := range all {
			names = append(names, fw.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
	}
}
