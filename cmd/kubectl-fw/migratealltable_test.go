package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// fleetOf is a fleet at noon.
func fleetOf(all ...*v1alpha1.FleetWorkload) *fleet {
	rules := bulk.Rules{To: "ocm", AtOnce: 2, Patience: time.Minute}
	return &fleet{Migration: bulk.New(rules, all, noon), rules: rules, program: "kubectl fw", began: noon, versions: map[client.ObjectKey]string{}}
}

// wentBack has a wave that failed and went back.
func wentBack(fw *v1alpha1.FleetWorkload) {
	onItsWay(fw)
	fw.Status.Migration.Phase, fw.Status.Migration.Clusters[0].Phase = v1alpha1.MigrationPhaseRolledBack, v1alpha1.MigrationPhaseRolledBack
	fw.Status.Migration.Failure, fw.Status.Migration.Approval = "cluster m1: not within 10m0s: the new backend has not taken it over", "retry-wave-1-7"
}

func TestFleetTable(t *testing.T) {
	f := fleetOf(member("shop", "a-name-that-is-longer-than-a-row-has-room-for"), member("shop", "b"), member("shop", "c"), member("shop", "d"),
		member("shop", "e", suspendedNow), member("shop", "f", arrivedThere))
	now := noon.Add(40 * time.Second)
	f.See(member("shop", "a-name-that-is-longer-than-a-row-has-room-for", onItsWay), noon)
	f.See(member("shop", "b", onItsWay), noon)
	f.See(member("shop", "b", arrivedThere), now)
	f.See(member("shop", "c", waitsForApproval), now)
	f.See(member("shop", "d", wentBack), now)
	f.Next(now)
	var out bytes.Buffer
	writeFleet(&out, f, now.Add(80*time.Second))
	fmt.Fprintln(&out, "---")
	writeFleetEnd(&out, f, f.Outcome(), now)
	compareGolden(t, "migrate/fleet.golden", out.String())
}

// TestFleetTableInDocs: a terminal shows what the page on kubectl fw draws.
func TestFleetTableInDocs(t *testing.T) {
	f := fleetOf(member("shop", "api"), member("shop", "cart"), member("shop", "db"), member("shop", "web"),
		member("shop", "mail", suspendedNow), member("shop", "search", arrivedThere))
	now := noon.Add(80 * time.Second)
	f.See(member("shop", "cart", onItsWay), noon)
	f.See(member("shop", "cart", arrivedThere), now)
	f.See(member("shop", "api", onItsWay), now)
	f.See(member("shop", "db", waitsForApproval), now)
	f.See(member("shop", "web", wentBack), now)
	f.Next(now)
	var out bytes.Buffer
	writeFleet(&out, f, now.Add(40*time.Second))
	page, err := os.ReadFile("../../docs/kubectl-fw.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```text\n"+out.String()+"```\n") {
		t.Errorf("docs/kubectl-fw.md does not show\n%s", out.String())
	}
}

// What is said of the whole fits on a terminal of 80 columns, and so do the rows up to their message.
func TestFleetTableIsNarrow(t *testing.T) {
	var all []*v1alpha1.FleetWorkload
	for i := range 8000 {
		change := []func(*v1alpha1.FleetWorkload){func(*v1alpha1.FleetWorkload) {}, suspendedNow, arrivedThere, onItsWay, waitsForApproval, wentBack}[i%6]
		all = append(all, member(strings.Repeat("namespace", 4), fmt.Sprintf("name-%d", i), change))
	}
	f := fleetOf(all...)
	f.See(member(strings.Repeat("namespace", 4), "name-0", onItsWay), noon)
	f.See(member(strings.Repeat("namespace", 4), "name-0", arrivedThere), noon.Add(time.Hour))
	f.Next(noon)
	var out bytes.Buffer
	writeFleet(&out, f, noon.Add(100*time.Hour))
	lines := strings.Split(out.String(), "\n")
	if len(lines) > 30 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if before, _, row := strings.Cut(line, "..."); !row && len(line) > 80 || row && (before != "" || strings.Index(line, "h  ") > 70) {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestFleetScreen(t *testing.T) {
	f := fleetOf(member("shop", "a", onItsWay))
	var out bytes.Buffer
	s := &fleetScreen{picture: inPlace{out: &out}}
	s.draw(f, noon)
	once := out.Len()
	if s.draw(f, noon.Add(drawnAtMost/2)); out.Len() != once {
		t.Error("it is drawn more often than anybody sees")
	}
	s.draw(f, noon.Add(drawnAtMost))
	if !strings.Contains(out.String()[once:], "\x1b[7A\r") {
		t.Errorf("the second picture is not in the place of the first: %q", out.String()[once:])
	}
}

func TestFleetVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		fw      *v1alpha1.FleetWorkload
		outcome bulk.Outcome
		want    string
	}{
		"all are there":         {member("shop", "a", arrivedThere), bulk.OutcomeComplete, ""},
		"left":                  {member("shop", "a", onItsWay), bulk.OutcomeLeft, ""},
		"left, with a failure":  {member("shop", "a", wentBack), bulk.OutcomeLeft, "not all are on backend ocm: 0 there, 1 failed"},
		"left, and one skipped": {member("shop", "a", suspendedNow), bulk.OutcomeLeft, "not all are on backend ocm: 0 there, 1 skipped"},
		"one waits":             {member("shop", "a", waitsForApproval), bulk.OutcomeIncomplete, "not all are on backend ocm: 0 there, 1 waiting"},
		"stopped":               {member("shop", "a", wentBack), bulk.OutcomeStopped, "stopped, more have failed than may: 0 there, 1 failed"},
		"interrupted":           {member("shop", "a", onItsWay), bulk.OutcomeInterrupted, "interrupted: 0 there, 1 under way"},
	} {
		err := fleetOf(tc.fw).verdict(tc.outcome)
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestFleetDryRun(t *testing.T) {
	inv, err := loadInventory("testdata/migrate/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := moving(t)
	named.Name = "web-0"
	from := reporting{inventory: inv, report: carriesOut(revisionOf(t, named, inv), 6, 3, 3)}
	for name, tc := range map[string]struct {
		to     string
		source source
		as     string
		want   string
	}{
		"good":          {"ocm", from, "", ""},
		"problems":      {"small", from, "", "1 FleetWorkload would not begin"},
		"problems-json": {"small", from, "json", "1 FleetWorkload would not begin"},
		"nowhere":       {"nowhere", from, "", `"nowhere"`},
		"listed":        {"nowhere", nil, "", ""},
		"listed-name":   {"nowhere", nil, "name", ""},
		"listed-yaml":   {"nowhere", nil, "yaml", ""},
	} {
		fws := []*v1alpha1.FleetWorkload{moving(t, resting), moving(t), moving(t, resting, suspendedNow)}
		for i, fw := range fws {
			fw.Name = fmt.Sprintf("web-%d", i)
			fw.Status.Workload.Name = fw.Name
		}
		f := fleetOf()
		f.rules.To = tc.to
		f.Migration = bulk.New(f.rules, fws, noon)
		var out bytes.Buffer
		err := f.rehearse(&out, tc.source, inFormat(tc.as, false))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v", name, err)
		}
		if out.Len() > 0 {
			compareGolden(t, "migrate/fleet-dryrun-"+name+".golden", out.String())
		}
	}
	if _, known := from.backend("nowhere"); !errors.Is(known, backends.ErrNotConfigured) {
		t.Errorf("the inventory has a backend nowhere: %v", known)
	}
}

func TestNothingIsChosen(t *testing.T) {
	opts := &manyOptions{order: "name", atOnce: 1, requirements: labels.SelectorFromSet(labels.Set{"team": "none"})}
	f, w, err := opts.gather(t.Context(), fakeClient(t, member("shop", "a")), "ocm")
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	f.picture, w.errOut = fleetPictureOn(&out), &errOut
	if err := f.run(t.Context(), w, nil, &out); err != nil || f.Counts().Chosen != 0 {
		t.Errorf("error %v, counts %+v", err, f.Counts())
	}
}
