// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

const runbooks = "https://github.com/fleetworkload/fleetworkload/blob/main/docs/alerts.md#"

// alert is a rule as the file has it.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type rulesFile struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

func read(t *testing.T) (f rulesFile, all []alert) {
	t.Helper()
	decode(t, "config/monitoring/prometheus-rules.yaml", &f)
	for _, group := range f.Spec.Groups {
		all = append(all, group.Rules...)
	}
	return f, all
}

// proof has an alert fire and clear.
type proof struct {
	// series are in promtool's notation, with a sample a minute. The leader is added unless there is one.
	series []string
	// fires is the first minute at which the alert fires, and clears the first after that at which it does not.
	fires, clears int
	// says is in the summary or the description.
	says string
}

const (
	leader    = `leader_election_master_status{name="fleetworkload.fleetworkload.io",pod="a"}`
	shard     = `leader_election_master_status{name="fleetworkload-a.fleetworkload.io",pod="c"}`
	elsewhere = `leader_election_master_status{name="fleetworkload.example.com",pod="e"}`
	follower  = `leader_election_master_status{name="fleetworkload.fleetworkload.io",pod="b"}`
	passes    = `controller_runtime_reconcile_total{controller="fleetworkload",result="success"}`
	failures  = `controller_runtime_reconcile_errors_total{controller="fleetworkload"}`
	depth     = `workqueue_depth{name="fleetworkload"}`
	running   = `workqueue_longest_running_processor_seconds{name="fleetworkload"}`
	rejection = `apiserver_admission_webhook_rejection_count{name="authors.fleetworkload.io",error_type=`
)

// since is a series of the time zero, which begins and ends in a minute.
func since(from, to int, state, reason string) string {
	return fmt.Sprintf(`fleetworkload_state_start_timestamp_seconds{backend="ocm",state=%q,reason=%q} _x%d 0x%d stale`, state, reason, from, to-from-1)
}

var proofs = map[string][]proof{
	"FleetWorkloadNoLeader": {
		{[]string{leader + " 1x5 0x10", follower + " 0x16 1x10"}, 11, 17, "leads"}, // the lease is taken over late
		{[]string{leader + " _x10 1x5"}, 5, 10, "leads"},                           // nothing is scraped
		{[]string{shard + " 1x5 0x10 1x5", elsewhere + " 0x30"}, 11, 17, "lease fleetworkload-a.fleetworkload.io"},
	},
	"FleetWorkloadBackendDown": {
		{[]string{`fleetworkload_backend_up{backend="ocm"} 1x5 0x10 1x5`, `fleetworkload_backend_up{backend="karmada"} 1x30`}, 11, 17, "Backend ocm"},
	},
	"FleetWorkloadBackendTokenExpires": {
		// It holds for four hours from the beginning, and is renewed in the third.
		{[]string{`fleetworkload_backend_token_expiry_timestamp_seconds{backend="ocm"} 14400x149 90000x10`}, 126, 150, "1h 5"},
	},
	"FleetWorkloadPassesFail": {
		// Ten passes a minute; from minute 30 on half of them fail, for an hour.
		{[]string{passes + " 0+10x150", failures + " 0x30 5+5x59 300x60"}, 48, 98, "of the passes"},
	},
	"FleetWorkloadQueueStuck": {
		{[]string{running + " 0+60x40 0x10"}, 21, 41, "does not get on"},
		{[]string{depth + " 3x60", passes + " 0+1x10 10x30 11+1x30"}, 24, 42, "does not get on"},
	},
	"FleetWorkloadStalled": {
		{[]string{since(0, 90, "Stalled", "InvalidTemplate")}, 66, 90, "InvalidTemplate"},
	},
	"FleetWorkloadRemovalHeld": {
		{[]string{`fleetworkload_fleetworkloads{backend="ocm",state="Stalled",reason="RemovalHeld"} _x9 2x100 stale`, since(9, 110, "Stalled", "RemovalHeld")}, 14, 110, "2 FleetWorkloads on backend ocm"},
	},
	"FleetWorkloadMigrationNeedsApproval": {
		{[]string{since(0, 300, "Stalled", "MigrationNeedsApproval")}, 246, 300, "backend ocm is being moved, and has waited 4h 6m"},
	},
	"FleetWorkloadMigrationFailed": {
		{[]string{`fleetworkload_fleetworkloads{backend="ocm",state="Stalled",reason="MigrationFailed"} _x9 1x100 stale`, since(9, 110, "Stalled", "MigrationFailed")}, 14, 110, "1 workloads on backend ocm"},
	},
	"FleetWorkloadMigrationStuck": {
		{[]string{`fleetworkload_migration_wave_start_timestamp_seconds{from="karmada",to="ocm",phase="Verifying"} 0x149 9000x10`}, 126, 150, "karmada to ocm"},
	},
	"FleetWorkloadClustersStale": {
		{[]string{`fleetworkload_stale_clusters{backend="ocm"} 0x9 3x19 0x5`, `fleetworkload_stale_clusters{backend="karmada"} 0x40`}, 25, 30, "3 when a cluster"},
	},
	"FleetWorkloadRolloutSlow": {
		{[]string{since(0, 90, "Reconciling", "Progressing"), since(0, 90, "Reconciling", "Migrating")}, 66, 90, "Progressing"},
		{[]string{since(0, 90, "New", "")}, 66, 90, "backend ocm take long: New"},
	},
	"FleetWorkloadWebhookFails": {
		{[]string{rejection + `"calling_webhook_error"} 0x10 1+1x5 6x20`}, 13, 25, "could not ask"},
		{[]string{`controller_runtime_webhook_requests_total{webhook="/validate-fleetworkload",code="500"} 0x10 1+1x5 6x20`}, 13, 25, "could not ask"},
	},
	"FleetWorkloadWebhookRefuses": {
		{[]string{rejection + `"no_error"} 0x10 1+1x29 30x60`}, 36, 60, "may not do"},
	},
}

// TestAlertsFireAndClear has Prometheus' own rule engine evaluate the rules each minute, as promtool does. No other alert fires meanwhile.
func TestAlertsFireAndClear(t *testing.T) {
	f, all := read(t)
	path := f.write(t)
	for _, a := range all {
		if len(proofs[a.Alert]) == 0 {
			t.Errorf("nothing proves that %s fires and clears", a.Alert)
		}
		for i, p := range proofs[a.Alert] {
			t.Run(fmt.Sprintf("%s %d", a.Alert, i), func(t *testing.T) { p.check(t, path, a.Alert) })
		}
	}
}

// write has Prometheus' own file of the rules.
func (f rulesFile) write(t *testing.T) (path string) {
	t.Helper()
	spec, err := yaml.Marshal(f.Spec)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAShardWithoutALeader: the chart, which knows the shards, also tells of one that nothing is scraped of. hack/tools/chart sees that it renders the
// expression that is tried here.
func TestAShardWithoutALeader(t *testing.T) {
	const name, other = "FleetWorkloadNoLeader", `leader_election_master_status{name="fleetworkload-b.fleetworkload.io",pod="d"} 1x30`
	f, _ := read(t)
	rule := &f.Spec.Groups[0].Rules[0]
	rule.Expr = string(file(t, "hack/monitoring/testdata/no-leader-of-shards.promql"))
	if rule.Alert != name {
		t.Fatalf("the first alert is %s", rule.Alert)
	}
	path := f.write(t)
	for text, p := range map[string]proof{
		"none leads":                    {[]string{shard + " 1x5 0x10 1x5", other}, 11, 17, "lease fleetworkload-a.fleetworkload.io"},
		"all are gone":                  {[]string{shard + " 1x5 stale _x9 1x5", other}, 11, 16, "lease fleetworkload-a.fleetworkload.io"},
		"none leads, then all are gone": {[]string{shard + " 0x4 stale _x9 1x5", other}, 5, 15, "lease fleetworkload-a.fleetworkload.io"},
		"none is there at first":        {[]string{shard + " _x10 1x5", other}, 5, 10, "lease fleetworkload-a.fleetworkload.io"},
	} {
		t.Run(text, func(t *testing.T) { p.check(t, path, name) })
	}
}

func (p proof) check(t *testing.T, path, name string) {
	t.Helper()
	series := p.series
	if !strings.HasPrefix(series[0], leader) {
		series = append([]string{leader + " 1x400"}, series...)
	}
	fired := firing(t, path, series, p.clears+5)
	var minutes []int
	for minute, alerts := range fired {
		for _, a := range alerts {
			if a.Labels.Get("alertname") != name {
				t.Errorf("%s fires too, in minute %d", a.Labels, minute)
				continue
			}
			minutes = append(minutes, minute)
			text := a.Annotations.Get("summary") + "\n" + a.Annotations.Get("description")
			if minute == p.fires && !strings.Contains(text, p.says) || strings.Contains(text, "error") || strings.Contains(text, "no value") {
				t.Errorf("it says %q", text)
			}
		}
	}
	var want []int
	for minute := p.fires; minute < p.clears; minute++ {
		want = append(want, minute)
	}
	if slices.Sort(minutes); !slices.Equal(minutes, want) || len(want) == 0 {
		t.Errorf("it fires in minutes %v, not %d to %d", minutes, p.fires, p.clears)
	}
}

// firing are the alerts that fire, by minute.
func firing(t *testing.T, path string, series []string, minutes int) map[int][]*rules.Alert {
	t.Helper()
	loader, err := promqltest.NewLazyLoader("load 1m\n  "+strings.Join(series, "\n  ")+"\n", promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loader.Close() }()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(),
	})
	groups, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, path)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	fired := map[int][]*rules.Alert{}
	for minute := range minutes {
		now := time.Unix(int64(minute)*60, 0).UTC()
		loader.WithSamplesTill(now, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(t.Context(), now)
				fired[minute] = append(fired[minute], firingIn(t, group)...)
			}
		})
	}
	return fired
}

func firingIn(t *testing.T, group *rules.Group) (all []*rules.Alert) {
	t.Helper()
	for _, rule := range group.AlertingRules() {
		if err := rule.LastError(); err != nil {
			t.Fatalf("%s: %v", rule.Name(), err)
		}
		for _, a := range rule.ActiveAlerts() {
			if a.State == rules.StateFiring {
				all = append(all, a)
			}
		}
	}
	return all
}

// TestEachAlertHasARunbook: and says how bad it is, and there is no runbook for what is not there.
func TestEachAlertHasARunbook(t *testing.T) {
	_, all := read(t)
	sections := map[string]string{}
	for _, section := range strings.Split(string(file(t, "docs/alerts.md")), "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for _, a := range all {
		text, there := sections[a.Alert]
		delete(sections, a.Alert)
		for _, part := range []string{"**Means:** ", "**See more:** ", "**Do:** ", "`" + a.Labels["severity"] + "`"} {
			if !strings.Contains(text, part) {
				t.Errorf("the runbook of %s (%t) lacks %s", a.Alert, there, part)
			}
		}
		if got, want := a.Annotations["runbook_url"], runbooks+strings.ToLower(a.Alert); got != want {
			t.Errorf("%s leads to %s, not %s", a.Alert, got, want)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" || a.For == "" {
			t.Errorf("%s says too little: %+v", a.Alert, a)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s is %q", a.Alert, a.Labels["severity"])
		}
	}
	if len(sections) > 0 {
		t.Errorf("there are runbooks without an alert: %v", slices.Sorted(maps.Keys(sections)))
	}
}

// TestRulesNameWhatThereIs: each metric is on the page, with each label by which a rule chooses, and each reason is among the conditions.
func TestRulesNameWhatThereIs(t *testing.T) {
	_, all := read(t)
	page, conditions := string(file(t, "docs/metrics.md")), string(file(t, "docs/conditions.md"))
	looked := 0
	for _, a := range all {
		expr, err := parser.ParseExpr(a.Expr)
		if err != nil {
			t.Fatalf("%s: %v", a.Alert, err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if v, is := node.(*parser.VectorSelector); is {
				looked++
				for _, problem := range unknown(v, page, conditions) {
					t.Errorf("%s: %s", a.Alert, problem)
				}
			}
			return nil
		})
	}
	if looked < len(all) {
		t.Errorf("looked at %d metrics of %d alerts", looked, len(all))
	}
}

// row of the page that tells of a metric: its labels stand in the row.
func row(page, metric string) string {
	return regexp.MustCompile("(?m)^\\| `" + metric + "[`{].*$").FindString(page)
}

// unknown is what a selector names that is not there.
func unknown(v *parser.VectorSelector, page, conditions string) (problems []string) {
	found := row(page, v.Name)
	if found == "" {
		return []string{"there is no " + v.Name}
	}
	for _, m := range v.LabelMatchers {
		if m.Name != labels.MetricName && !regexp.MustCompile(`\b`+m.Name+`\b`).MatchString(found) {
			problems = append(problems, v.Name+" has no label "+m.Name)
		}
		if m.Name != "reason" {
			continue
		}
		for _, reason := range strings.Split(m.Value, "|") {
			if !strings.Contains(conditions, "\n### "+reason+"\n") {
				problems = append(problems, "there is no reason "+reason)
			}
		}
	}
	return problems
}

// TestWhatRulesMayNotNameIsFound: the test above can fail.
func TestWhatRulesMayNotNameIsFound(t *testing.T) {
	page, conditions := string(file(t, "docs/metrics.md")), string(file(t, "docs/conditions.md"))
	for _, wrong := range []string{`fleetworkload_no_such`, `fleetworkload_backend_up{cluster="a"}`, `fleetworkload_fleetworkloads{reason=~"Ready|Bored"}`} {
		expr, err := parser.ParseExpr(wrong)
		if err != nil {
			t.Fatal(err)
		}
		if len(unknown(expr.(*parser.VectorSelector), page, conditions)) != 1 {
			t.Errorf("nobody minds %s", wrong)
		}
	}
}
