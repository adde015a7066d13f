package histories

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// The two backends. The first is gated as Karmada's driver is, the second writes each cluster's work as it comes, as OCM's is.
const (
	gated = "karmada"
	plain = "ocm"
)

// spec is a FleetWorkload's spec as histories know it.
type spec struct {
	Backend  string
	Replicas int
	// Image and Env are what pods run; each edit takes a number that was never used before.
	Image, Env int
	// Newer has the workload written in the newer of its kind's versions.
	Newer bool
	// Over are environments of clusters that have their own.
	Over map[string]int
	// Own are the replicas of clusters that have a number of their own.
	Own map[string]int
	// most bounds those of clusters that are not chosen any more, where the oracle tries what they may have been given.
	most map[string]int
	// Names, Exclude and Label choose clusters, or else Groups do.
	Names, Exclude []string
	Label          bool
	Groups         [][]string
	Number         int
	Divided        bool
	Prefer         string
	Weights        map[string]int
	// Failover is a purge policy; empty is without. Tolerates are seconds.
	Failover  string
	Tolerates int

	// Paused are clusters on which nothing is to change.
	Paused []string

	Suspend, Adopt, Orphan bool
	// Approval has changes wait for a person.
	Approval bool

	// Wave is the size of the first wave of a hand-over; empty is without.
	Wave          string
	Soak, Timeout int
	Manual, Pause bool
}

func newSpec() spec { return spec{Backend: gated, Replicas: 6, Divided: true, Image: 1, Env: 1} }

func (s spec) clone() spec {
	s.Over, s.Own, s.Weights = maps.Clone(s.Over), maps.Clone(s.Own), maps.Clone(s.Weights)
	s.Names, s.Exclude = slices.Clone(s.Names), slices.Clone(s.Exclude)
	s.Groups, s.Paused = slices.Clone(s.Groups), slices.Clone(s.Paused)
	return s
}

// pods are what the pods of a cluster run by the spec.
func (s spec) pods(cluster string) template {
	env := s.Env
	if own, has := s.Over[cluster]; has {
		env = own
	}
	return template{Image: fmt.Sprintf("img:%d", s.Image), Env: fmt.Sprint(env)}
}

// clustersPart is what decides which clusters are chosen.
func (s spec) clustersPart() string {
	return fmt.Sprint(s.Names, s.Exclude, s.Label, s.Groups, s.Number, s.Failover, s.Tolerates)
}

// divisionPart is what decides how replicas are divided.
func (s spec) divisionPart() string {
	return fmt.Sprint(s.Divided, s.Prefer, s.Weights, s.Paused, s.Own)
}

// approvable is what of the spec waits for approval.
func (s spec) approvable() string {
	free := newSpec()
	s.Replicas, s.Paused, s.Suspend, s.Orphan, s.Approval = free.Replicas, nil, false, false, false
	s.Wave, s.Soak, s.Timeout, s.Manual, s.Pause = "", 0, 0, false, false
	raw, err := json.Marshal(s.object())
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func named(names ...string) *v1alpha1.ClusterSelector { return &v1alpha1.ClusterSelector{Names: names} }

// called selects a cluster by its label, so that a cluster that leaves does not make the spec a wrong one.
func called(name string) *v1alpha1.ClusterSelector {
	return &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}}
}

func seconds(n int) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(n) * time.Second}
}

func ptr[T any](v T) *T { return &v }

// mostOlder is how many older versions of what is shipped are kept: fewer than histories have.
const mostOlder = 2

// object is the spec as the API has it.
func (s spec) object() v1alpha1.FleetWorkloadSpec {
	out := v1alpha1.FleetWorkloadSpec{
		Backend: s.Backend, Replicas: ptr(int32(s.Replicas)), Template: runtime.RawExtension{Raw: s.template()},
		Placement: s.placement(), ConflictPolicy: v1alpha1.ConflictPolicyFail, DeletionPolicy: v1alpha1.DeletionPolicyDelete,
		RevisionHistoryLimit: ptr(int32(mostOlder)),
	}
	for _, cluster := range slices.Sorted(maps.Keys(s.Over)) {
		out.Overrides = append(out.Overrides, v1alpha1.Override{Clusters: called(cluster), Env: []v1alpha1.EnvOverride{
			{Container: "main", Set: []v1alpha1.EnvVar{{Name: "E", Value: fmt.Sprint(s.Over[cluster])}}},
		}})
	}
	for _, cluster := range slices.Sorted(maps.Keys(s.Own)) {
		out.Overrides = append(out.Overrides, v1alpha1.Override{Clusters: named(cluster), Replicas: ptr(int32(s.Own[cluster]))})
	}
	if s.Suspend {
		out.Suspend = ptr(true)
	}
	if s.Approval {
		out.Approval = v1alpha1.ApprovalPolicyManual
	}
	if s.Adopt {
		out.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	}
	if s.Orphan {
		out.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	}
	out.Migration = s.migration()
	return out
}

func (s spec) migration() *v1alpha1.MigrationStrategy {
	if s.Wave == "" && s.Timeout == 0 && !s.Pause {
		return nil
	}
	m := &v1alpha1.MigrationStrategy{}
	if s.Wave != "" {
		size := intstr.Parse(s.Wave)
		w := v1alpha1.MigrationWave{Size: &size, Soak: seconds(s.Soak)}
		if s.Manual {
			w.Approval = v1alpha1.ApprovalPolicyManual
		}
		m.Waves = append(m.Waves, w)
	}
	if s.Timeout > 0 {
		m.Timeout = seconds(s.Timeout)
	}
	if s.Pause {
		m.OnFailure = v1alpha1.FailureActionPause
	}
	return m
}

// versionOf is one of the two versions of the kind.
func versionOf(newer bool) string {
	if newer {
		return "v1beta1"
	}
	return "v1alpha1"
}

func (s spec) template() []byte {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apps.kruise.io/" + versionOf(s.Newer), "kind": "StatefulSet",
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "w"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "w"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "main", "image": fmt.Sprintf("img:%d", s.Image),
					"env": []any{map[string]any{"name": "E", "value": fmt.Sprint(s.Env)}},
				}}},
			},
		},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

func (s spec) placement() v1alpha1.Placement {
	p := v1alpha1.Placement{}
	if len(s.Groups) > 0 {
		for i, names := range s.Groups {
			p.Groups = append(p.Groups, v1alpha1.ClusterGroup{Name: fmt.Sprint("g", i), Clusters: named(names...)})
		}
	} else {
		p.Clusters = &v1alpha1.ClusterSelector{Names: s.Names, Exclude: s.Exclude}
		if s.Label {
			p.Clusters.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "on"}}
		}
	}
	if s.Number > 0 {
		p.NumberOfClusters = ptr(int32(s.Number))
	}
	if s.Divided {
		p.Division = &v1alpha1.Division{
			Type: v1alpha1.DivisionTypeDivided, Preference: v1alpha1.DivisionPreference(orElse(s.Prefer, "Weighted")),
		}
		for _, cluster := range slices.Sorted(maps.Keys(s.Weights)) {
			p.Division.Weights = append(p.Division.Weights,
				v1alpha1.ClusterWeight{Clusters: called(cluster), Weight: ptr(int32(s.Weights[cluster]))})
		}
	} else {
		p.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDuplicated, Preference: v1alpha1.DivisionPreferenceWeighted}
	}
	if len(s.Paused) > 0 {
		p.Paused = named(s.Paused...)
	}
	if s.Failover != "" {
		p.Failover = &v1alpha1.Failover{TolerationSeconds: ptr(int32(s.Tolerates)), Purge: v1alpha1.PurgePolicy(s.Failover)}
	}
	return p
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// set makes one edit; what it does not know is a mistake of the histories.
func (s *spec) set(do step) {
	switch do.Do {
	case "backend":
		s.Backend = do.S
	case "replicas":
		s.Replicas = do.N
	case "image":
		s.Image = do.N
	case "env":
		s.Env = do.N
	case "version":
		s.Newer = do.N > 0
	case "over":
		if s.Over == nil {
			s.Over = map[string]int{}
		}
		if s.Over[do.S] = do.N; do.N == 0 {
			delete(s.Over, do.S)
		}
	case "own":
		if s.Own == nil {
			s.Own = map[string]int{}
		}
		if s.Own[do.S] = do.N; do.N < 0 {
			delete(s.Own, do.S)
		}
	case "names":
		s.Names, s.Groups = strings.Fields(do.S), nil
	case "exclude":
		s.Exclude, s.Groups = strings.Fields(do.S), nil
	case "label":
		s.Label, s.Groups = do.N > 0, nil
	case "groups":
		s.Groups = nil
		for _, g := range strings.Split(do.S, "|") {
			s.Groups = append(s.Groups, strings.Fields(g))
		}
	case "number":
		s.Number = do.N
	case "divided":
		s.Divided, s.Prefer, s.Weights = do.N > 0, "", nil
	case "prefer":
		s.Divided, s.Prefer, s.Weights = true, do.S, nil
	case "weights":
		s.Divided, s.Prefer, s.Weights = true, "", numbers(do.S)
	case "failover":
		s.Failover, s.Tolerates = do.S, do.N
	case "paused":
		s.Paused = strings.Fields(do.S)
	case "suspend":
		s.Suspend = do.N > 0
	case "approval":
		s.Approval = do.N > 0
	case "adopt":
		s.Adopt = do.N > 0
	case "orphan":
		s.Orphan = do.N > 0
	case "wave":
		s.Wave, s.Soak = do.S, do.N
	case "manual":
		s.Manual = do.N > 0
	case "timeout":
		s.Timeout = do.N
	case "pause":
		s.Pause = do.N > 0
	default:
		panic("no such edit: " + do.Do)
	}
}

// numbers reads "c1=3 c2=1".
func numbers(text string) map[string]int {
	var out map[string]int
	for _, field := range strings.Fields(text) {
		name, n, _ := strings.Cut(field, "=")
		var value int
		if _, err := fmt.Sscan(n, &value); err != nil {
			panic(err)
		}
		if out == nil {
			out = map[string]int{}
		}
		out[name] = value
	}
	return out
}
