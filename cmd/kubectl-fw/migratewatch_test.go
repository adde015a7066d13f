package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// seen are the states that somebody who waits gets to see, until the last one.
func seen(t *testing.T, to string, states ...*v1alpha1.FleetWorkload) (string, error) {
	t.Helper()
	began, err := json.Marshal(moving(t).Spec)
	if err != nil {
		t.Fatal(err)
	}
	kept := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-migration-3-36617d82790378da"}, Data: runtime.RawExtension{Raw: began},
	}
	var out bytes.Buffer
	c := fakeClient(t, kept)
	a := &awaiting{client: c, key: web, to: to, program: "kubectl fw", picture: pictureOn(&out)}
	for _, fw := range states {
		if err := a.see(t.Context(), fw, &out); err != nil {
			return out.String(), err
		}
	}
	return out.String(), nil
}

// On what the command ends, and with which words.
func TestAwaitEnds(t *testing.T) {
	stalled := func(fw *v1alpha1.FleetWorkload) {
		resting(fw)
		fw.Spec.Backend = "ocm"
		setCondition(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "the placement no longer chooses member1")
	}
	unapproved := func(fw *v1alpha1.FleetWorkload) {
		resting(fw)
		fw.Spec.Backend = "ocm"
		fw.Status.Change = &v1alpha1.ChangeStatus{Approval: "5b2f8a7c90e1d346", Message: "Move on member1"}
	}
	answered := func(fw *v1alpha1.FleetWorkload) {
		unapproved(fw)
		fw.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: fw.Status.Change.Approval}
	}
	for name, tc := range map[string]struct {
		to    string
		state *v1alpha1.FleetWorkload
		// want is a part of the error; empty: it goes on.
		want string
	}{
		"it is there":                {"ocm", moving(t, ended("ocm", v1alpha1.MigrationPhaseCompleted)), errEnded.Error()},
		"it was there before":        {"karmada", moving(t, resting), errEnded.Error()},
		"it went back as asked":      {"karmada", moving(t, ended("karmada", v1alpha1.MigrationPhaseRolledBack)), errEnded.Error()},
		"somebody turned it round":   {"ocm", moving(t, ended("karmada", v1alpha1.MigrationPhaseRolledBack)), "was turned round, and nothing is left of it: shop/web is on backend karmada again"},
		"somebody gave it up":        {"ocm", moving(t, resting), "spec.backend was set to karmada meanwhile: shop/web is on backend karmada"},
		"under way":                  {"ocm", moving(t), ""},
		"frozen":                     {"ocm", moving(t, frozen), ""},
		"edited":                     {"ocm", moving(t, edited), ""},
		"a wave is going back":       {"ocm", moving(t, inPhase(v1alpha1.MigrationPhaseRollingBack, ""), fails), ""},
		"a wave went back":           {"ocm", moving(t, inPhase(v1alpha1.MigrationPhaseRolledBack, ""), fails, asks), "wave 2 failed: cluster member2: not within 15m0s: the new backend has not taken it over; try it again with: kubectl fw approve web -n shop, or turn round with: kubectl fw migrate web -n shop --to karmada"},
		"a person is asked":          {"ocm", moving(t, asks), "wave 2 has passed and waits for a person; let it go on with: kubectl fw approve web -n shop"},
		"a person has just said yes": {"ocm", moving(t, asks, approved), ""},
		"problems": {
			"ocm", moving(t, problems("cluster member2 is not known to backend ocm", "b")),
			"it cannot begin: cluster member2 is not known to backend ocm; b; it begins by itself when this is mended, or give it up with: kubectl fw migrate web -n shop --to karmada",
		},
		"it stalls otherwise": {"ocm", moving(t, stalled), "it goes no further: RemovalHeld: the placement no longer chooses member1"},
		"the change is not approved": {"ocm", moving(t, unapproved), "the change of spec.backend waits for a person: Move on member1; let it go on with: " +
			"kubectl fw approve web -n shop, or give it up with: kubectl fw migrate web -n shop --to karmada"},
		"the change is approved just now": {"ocm", moving(t, answered), ""},
		"not looked at yet":               {"ocm", moving(t, func(fw *v1alpha1.FleetWorkload) { fw.Generation = 9 }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := seen(t, tc.to, tc.state)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("it ends with %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is\n%v\nand should have\n%s", err, tc.want)
			}
		})
	}
}

// In a log every change has a line, and what is said twice is there once.
func TestAwaitInALog(t *testing.T) {
	out, err := seen(t, "ocm",
		moving(t, func(fw *v1alpha1.FleetWorkload) { fw.Generation = 9 }),
		moving(t, resting, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "ocm" }),
		moving(t, inPhase(v1alpha1.MigrationPhaseHandingOver, "the present backend has not confirmed that it has stopped")),
		moving(t, frozen), moving(t, frozen), moving(t), moving(t, edited),
		moving(t, everywhere(v1alpha1.MigrationPhaseReleasing)),
		moving(t, ended("ocm", v1alpha1.MigrationPhaseCompleted)))
	if !errors.Is(err, errEnded) {
		t.Errorf("it ends with %v", err)
	}
	compareGolden(t, "migrate/log.golden", withoutTimes(out))
}

// withoutTimes leaves out the clock that lines of a log begin with.
func withoutTimes(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if _, err := time.Parse(time.TimeOnly, strings.SplitN(line, " ", 2)[0]); err == nil {
			lines[i] = "12:00:00" + line[len(time.TimeOnly):]
		}
		if at := strings.Index(line, "since 2026"); at >= 0 {
			lines[i] = lines[i][:at] + "since 12:00:00" + lines[i][at+len("since 2026-03-01 11:59:30"):]
		}
	}
	return strings.Join(lines, "\n")
}

func streamsTo(out, errOut *bytes.Buffer) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
}

// Whoever comes when the migration is over is told so at once.
func TestAwaitAfterwards(t *testing.T) {
	c := fakeClient(t, moving(t, ended("ocm", v1alpha1.MigrationPhaseCompleted)))
	var out, errOut bytes.Buffer
	if err := setBackend(t.Context(), c, web, "ocm", &out); err != nil {
		t.Fatal(err)
	}
	a := &awaiting{client: c, key: web, to: "ocm", picture: pictureOn(&out)}
	if err := a.run(t.Context(), c, streamsTo(&out, &errOut)); err != nil {
		t.Fatal(err)
	}
	if want := "spec.backend of shop/web is ocm already\nshop/web is on backend ocm\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// Who stops looking, or sees it deleted, has not seen it arrive.
func TestAwaitCutShort(t *testing.T) {
	c := fakeClient(t, moving(t))
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &awaiting{client: c, key: web, to: "ocm", picture: pictureOn(&out)}
	if err := a.run(ctx, c, streamsTo(&out, &errOut)); err == nil || !strings.Contains(err.Error(), "goes on by itself") {
		t.Errorf("interrupted, it ends with %v", err)
	}
	a = &awaiting{client: c, key: client.ObjectKey{Namespace: "shop", Name: "db"}, to: "ocm", picture: pictureOn(&out)}
	if err := a.run(t.Context(), c, streamsTo(&out, &errOut)); err == nil || !strings.Contains(err.Error(), `FleetWorkload "db" not found`) {
		t.Errorf("without a FleetWorkload, it ends with %v", err)
	}
}
