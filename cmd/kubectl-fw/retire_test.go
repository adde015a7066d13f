package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// retired is a backend that takes what is preserved up after some looks.
type retired struct {
	dependents []backends.Dependent
	preserved  []backends.Owner
	after      int
	refuses    error
}

func (r *retired) Dependents(context.Context) ([]backends.Dependent, error) {
	if len(r.preserved) > 0 {
		if r.after--; r.after < 0 {
			for i, d := range r.dependents {
				if d.Owner == r.preserved[0] {
					r.dependents[i].Fate = backends.FateLeft
				}
			}
		}
	}
	return r.dependents, nil
}

func (r *retired) Preserve(_ context.Context, owner backends.Owner) error {
	r.preserved = append(r.preserved, owner)
	return r.refuses
}

func on(name, spec, status string, m *v1alpha1.MigrationStatus) *v1alpha1.FleetWorkload {
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	fw.Spec.Backend, fw.Status.Backend, fw.Status.Migration = spec, status, m
	return fw
}

func TestRetire(t *testing.T) {
	policy := backends.Owner{Kind: "PropagationPolicy", Namespace: "shop", Name: "p"}
	theirs := backends.Dependent{
		Cluster: "m1", Kind: "Deployment", Namespace: "shop", Name: "api", Owner: policy, Fate: backends.FateRemoved, Preserve: "set it",
	}
	own := backends.Dependent{Cluster: "m1", Kind: "ClusterRole", Name: "impersonator", Owner: backends.Owner{Kind: "Cluster", Name: "m1"}, Fate: backends.FateRemoved, Own: true}
	stuck := backends.Dependent{Cluster: "m1", Kind: "Secret", Namespace: "shop", Name: "s", Owner: backends.Owner{Kind: "Work", Namespace: "es", Name: "w"}, Fate: backends.FateRemoved}
	moved := on("moved", "ocm", "ocm", &v1alpha1.MigrationStatus{From: "karmada", To: "ocm"})
	for name, test := range map[string]struct {
		fws     []*v1alpha1.FleetWorkload
		backend retired
		opts    retireOptions
		as      string
		free    bool
		says    []string // in this order
		silent  string
		owners  int // that were preserved
	}{
		"nothing is left": {
			fws: []*v1alpha1.FleetWorkload{moved}, backend: retired{dependents: []backends.Dependent{own}}, free: true,
			says: []string{"Backend karmada may be switched off", "karmadactl unjoin"}, silent: "impersonator",
		},
		"FleetWorkloads": {
			fws: []*v1alpha1.FleetWorkload{
				on("there", "karmada", "karmada", nil), on("asked", "karmada", "", nil),
				on("moving", "ocm", "karmada", &v1alpha1.MigrationStatus{From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseHandingOver}), moved,
			},
			says: []string{"karmada: 3.", "shop        asked    spec.backend says so", "shop        moving   its migration from karmada to ocm is in phase HandingOver",
				"shop        there    it runs there"},
			silent: "moved",
		},
		"somebody else's": {
			backend: retired{dependents: []backends.Dependent{theirs, own}},
			says:    []string{"lets go of them: 1", "m1        Deployment shop/api   PropagationPolicy shop/p   --preserve   -"}, silent: "impersonator",
		},
		"as a dry run": {
			backend: retired{dependents: []backends.Dependent{theirs, stuck}}, opts: retireOptions{preserve: true, dryRun: true},
			says: []string{"would preserve what PropagationPolicy shop/p has brought: set it", "lets go of them: 2"},
		},
		"preserved": {
			backend: retired{dependents: []backends.Dependent{theirs}, after: 2}, opts: retireOptions{preserve: true}, owners: 1, free: true,
			says: []string{"preserved what PropagationPolicy shop/p has brought: set it", "nobody repairs any more: 1", "may be switched off"},
		},
		"what cannot be preserved": {
			backend: retired{dependents: []backends.Dependent{theirs, stuck}}, opts: retireOptions{preserve: true}, owners: 1,
			says: []string{"lets go of them: 1", "Secret shop/s   Work es/w    no"},
		},
		"for scripts": {
			fws: []*v1alpha1.FleetWorkload{on("there", "karmada", "karmada", nil)}, backend: retired{dependents: []backends.Dependent{theirs, stuck, own}}, as: "json",
			opts: retireOptions{preserve: true, dryRun: true},
			says: []string{"{\n  \"backend\": \"karmada\",", `"mayBeSwitchedOff": false`, `"name": "there"`, `"why": "it runs there"`, `"name": "api"`,
				`"preserve": "set it"`, `"name": "s"`, `"left": 0`},
			silent: "would preserve",
		},
		"for scripts, free": {as: "jsonpath={.mayBeSwitchedOff} {.objects}", free: true, says: []string{"true []"}},
		"names":             {fws: []*v1alpha1.FleetWorkload{on("there", "karmada", "karmada", nil)}, as: "name", says: []string{"fleetworkload.apps.fleetworkload.io/there\n"}},
		"without the right": {
			backend: retired{dependents: []backends.Dependent{theirs}, refuses: errors.New("forbidden")}, opts: retireOptions{preserve: true}, owners: 1,
			silent: "may be switched off",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, fw := range test.fws {
				objects = append(objects, fw)
			}
			known := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(known); err != nil {
				t.Fatal(err)
			}
			r := &retirement{
				name: "karmada", kind: config.TypeKarmada, backend: &test.backend, timeout: time.Minute, poll: time.Millisecond,
				management: fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build(),
			}
			var out, errOut bytes.Buffer
			test.opts.output = inFormat(test.as, true)
			err := r.run(t.Context(), streamsTo(&out, &errOut), test.opts)
			if (err == nil) != test.free {
				t.Errorf("error %v, free: %v", err, test.free)
			}
			rest := out.String()
			for _, text := range test.says {
				_, after, found := strings.Cut(rest, text)
				if !found {
					t.Fatalf("it does not say %q, or not there:\n%s", text, out.String())
				}
				rest = after
			}
			if test.silent != "" && strings.Contains(out.String(), test.silent) {
				t.Errorf("it says %q:\n%s", test.silent, out.String())
			}
			if len(test.backend.preserved) != test.owners {
				t.Errorf("preserved %v", test.backend.preserved)
			}
		})
	}
}
