package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pointer "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// versionIs is the number of the version that the spec has.
func versionIs(t *testing.T, c client.WithWatch) int64 {
	t.Helper()
	p, err := readPast(t.Context(), c, web)
	if err != nil {
		t.Fatal(err)
	}
	if p.present < 0 {
		return 0
	}
	return p.versions[p.present].number
}

// TestUndo goes back to what was shipped, and leaves the rest of the spec alone.
func TestUndo(t *testing.T) {
	edits := []shipped{
		replaced("nginx:1.26", "nginx:1.27"),
		func(s *v1alpha1.FleetWorkloadSpec) {
			withCompanions(keys("c2VzYW1l"))(s)
			withOverrides("1")(s)
			s.Dependencies = v1alpha1.DependencyPolicyPropagate
		},
		withCompanions(keys("b3Blbg==")),
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		opts   undoOptions
		is     int64
		prints []string
		fails  string
	}{
		"to the one before": {nil, undoOptions{}, 3, []string{
			"shop/web: from revision 4 back to revision 3:\n  companion Secret/keys: data.password changed\n",
			"note: a GitOps controller that owns these fields", "the spec of shop/web ships revision 3 again\n"}, ""},
		"to the first one": {nil, undoOptions{to: 1}, 1, []string{"nginx:1.27 -> nginx:1.26", "companion Secret/keys: removed", "override o0: removed", "dependencies: Propagate -> Ignore"}, ""},
		"a dry run":        {nil, undoOptions{to: 1, dryRun: true}, 4, []string{"nginx:1.27 -> nginx:1.26", "A dry run: nothing was changed\n"}, ""},
		"the present one":  {nil, undoOptions{to: 4}, 4, nil, "the spec of shop/web is that of revision 4 already"},
		"one that is not":  {nil, undoOptions{to: 9}, 4, nil, "revision 9 of shop/web is not kept; there are: 1, 2, 3, 4"},
		"from a spec that is refused": {func(fw *v1alpha1.FleetWorkload) { replaced(`"spec"`, `"spex"`)(&fw.Spec) }, undoOptions{}, 4,
			[]string{"from a spec that was not shipped back to revision 4:"}, ""},
		"in a hand-over": {func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Migration = &v1alpha1.MigrationStatus{From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseVerifying}
		}, undoOptions{}, 3, []string{"note: it is moving from backend karmada to ocm: the change waits until that is over\n"}, ""},
		"suspended": {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = pointer.To(true) }, undoOptions{}, 3,
			[]string{"note: spec.suspend is true: the change does not reach any cluster until it is false\n"}, ""},
		"under Flux": {func(fw *v1alpha1.FleetWorkload) {
			fw.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}
		}, undoOptions{}, 3, []string{"note: Flux manages it and may set these fields to its source again"}, ""},
		"under Argo CD": {func(fw *v1alpha1.FleetWorkload) {
			fw.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "apps"}
		}, undoOptions{}, 3, []string{"note: Argo CD manages it"}, ""},
		"another version runs": {func(fw *v1alpha1.FleetWorkload) { fw.Status.Workload.APIVersion = "apps/v2" }, undoOptions{}, 3, nil, ""},
		"another object runs": {func(fw *v1alpha1.FleetWorkload) { fw.Status.Workload.Kind = "CloneSet" }, undoOptions{}, 4, nil,
			`revision 3 is apps/v1 Deployment "web", and apps/v1 CloneSet "web" runs: kind and name of a running workload cannot change`},
		"being deleted": {func(fw *v1alpha1.FleetWorkload) {
			fw.DeletionTimestamp, fw.Finalizers = &metav1.Time{Time: noon}, []string{v1alpha1.Finalizer}
		}, undoOptions{}, 4, nil, "FleetWorkload shop/web is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			fw, objects := shipping(t, edits...)
			if test.change != nil {
				test.change(fw)
			}
			_, c := pastOf(t, fw, objects)
			before, err := read(t.Context(), c, web)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err = test.opts.undo(t.Context(), c, web, &out)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error is %v, want %q", err, test.fails)
			}
			for _, want := range test.prints {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not printed:\n%s", want, out.String())
				}
			}
			if n := versionIs(t, c); n != test.is {
				t.Errorf("the spec is that of revision %d, want %d", n, test.is)
			}
			after, err := read(t.Context(), c, web)
			if err != nil {
				t.Fatal(err)
			}
			for _, fw := range []*v1alpha1.FleetWorkload{before, after} {
				empty := revisions.Shipped{}
				fw.Spec.Template, fw.Spec.Companions, fw.Spec.Dependencies, fw.Spec.Overrides = empty.Template, nil, "", nil
			}
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
				t.Errorf("the rest of the spec is another (-before +after):\n%s", diff)
			}
		})
	}
}

// TestUndoTwice goes forth again: the one before the present one is that from before the first undo.
func TestUndoOfOne(t *testing.T) {
	fw, objects := shipping(t)
	_, c := pastOf(t, fw, objects)
	if err := (undoOptions{}).undo(t.Context(), c, web, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "no version of shop/web is kept from before the present one; there are: 1") {
		t.Errorf("error is %v", err)
	}
}

// TestUndoWhileTheStatusChanges: that is no reason to refuse.
func TestUndoWhileTheStatusChanges(t *testing.T) {
	fw, objects := shipping(t, replaced("nginx:1.26", "nginx:1.27"))
	_, inner := pastOf(t, fw, objects)
	patches := 0
	c := interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if patches++; patches < 3 {
				other, err := read(ctx, inner, web)
				if err != nil {
					return err
				}
				other.Annotations = map[string]string{"example.com/patches": fmt.Sprint(patches)} // the in-memory server counts it as it counts a status
				if err := inner.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	if err := (undoOptions{}).undo(t.Context(), c, web, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	if n := versionIs(t, c); n != 1 || patches != 3 {
		t.Errorf("the spec is that of revision %d, after %d patches", n, patches)
	}
}

// TestUndoOfWhatHasChanged: it is not what was shown.
func TestUndoOfWhatHasChanged(t *testing.T) {
	fw, objects := shipping(t, replaced("nginx:1.26", "nginx:1.27"))
	_, inner := pastOf(t, fw, objects)
	c := interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			other, err := read(ctx, inner, web)
			if err != nil {
				return err
			}
			replaced("nginx:1.27", "nginx:1.28")(&other.Spec)
			if err := inner.Update(ctx, other); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	if err := (undoOptions{}).undo(t.Context(), c, web, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "somebody has changed it in this moment") {
		t.Errorf("error is %v", err)
	}
	after, err := read(t.Context(), c, web)
	if err != nil || !strings.Contains(string(after.Spec.Template.Raw), "nginx:1.28") {
		t.Errorf("the other edit is lost: %s, %v", after.Spec.Template.Raw, err)
	}
}
