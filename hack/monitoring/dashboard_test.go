// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

const dashboardFile = "config/monitoring/dashboard.json"

// board is the form that every Grafana imports, and that its sidecar is given.
type board = dashboard.Dashboard //nolint:staticcheck // the form after it needs a newer Grafana

// parsed is the dashboard as Grafana's own types have it. A field that they do not know is an error, also one of a panel's or a query's options.
func parsed(raw []byte) (d board, err error) {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	var strict board // has no panels in it, as that library takes a list of no errors for one
	if err := some(strict.UnmarshalJSONStrict(raw)); err != nil {
		return d, err
	}
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return d, err
	}
	return d, some(d.Validate())
}

// some is an error but when it is a list of none, as that library returns.
func some(err error) error {
	var all cog.BuildErrors
	if errors.As(err, &all) && len(all) == 0 {
		return nil
	}
	return err
}

func grafana(t *testing.T) board {
	t.Helper()
	d, err := parsed(file(t, dashboardFile))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shown are the panels that show something. Rows are titles.
func shown(d board) (panels []dashboard.Panel) {
	for _, p := range d.Panels {
		if p.Panel != nil {
			panels = append(panels, *p.Panel)
		}
	}
	return panels
}

// query is one of a panel, with a value for each of Grafana's variables.
type query struct{ panel, expr, legend string }

func queries(t *testing.T, d board) (all []query) {
	t.Helper()
	filled := strings.NewReplacer("$__rate_interval", "5m", "$backend", ".*")
	for _, p := range shown(d) {
		for _, target := range p.Targets {
			q, is := target.(*prometheus.Dataquery)
			if !is {
				t.Fatalf("%s asks %T", value(p.Title), target)
			}
			all = append(all, query{value(p.Title), filled.Replace(q.Expr), value(q.LegendFormat)})
		}
	}
	return all
}

// TestDashboardIsWhole: whoever looks at a panel learns what it shows and in what, and no panel lies on another.
func TestDashboardIsWhole(t *testing.T) {
	d := grafana(t)
	for _, problem := range flaws(d) {
		t.Error(problem)
	}
	if n := len(shown(d)); n < 20 {
		t.Errorf("it has %d panels", n)
	}
}

// flaws are what stands against a dashboard that Grafana would take.
func flaws(d board) (problems []string) {
	ids, titles, taken := map[uint32]bool{}, map[string]bool{}, map[[2]uint32]string{}
	place := func(title string, id uint32, at *dashboard.GridPos) {
		if ids[id] || titles[title] || title == "" || id == 0 {
			problems = append(problems, fmt.Sprintf("panel %d %q is not the only one of that number and title", id, title))
		}
		ids[id], titles[title] = true, true
		if at == nil || at.W == 0 || at.H == 0 || at.X+at.W > 24 {
			problems = append(problems, title+" has no place in 24 columns")
			return
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other, is := taken[[2]uint32{x, y}]; is {
					problems = append(problems, title+" lies on "+other)
					return
				}
				taken[[2]uint32{x, y}] = title
			}
		}
	}
	for _, p := range d.Panels {
		if p.RowPanel != nil {
			place(value(p.RowPanel.Title), p.RowPanel.Id, p.RowPanel.GridPos)
			continue
		}
		place(value(p.Panel.Title), value(p.Panel.Id), p.Panel.GridPos)
		problems = append(problems, silent(*p.Panel)...)
	}
	return problems
}

// value of what may be absent.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// silent is what a panel does not say.
func silent(p dashboard.Panel) (problems []string) {
	title := value(p.Title)
	if value(p.Description) == "" {
		problems = append(problems, title+" has no description")
	}
	if p.FieldConfig == nil || value(p.FieldConfig.Defaults.Unit) == "" {
		problems = append(problems, title+" has no unit")
	}
	if len(p.Targets) == 0 || p.Datasource == nil || value(p.Datasource.Uid) != "${datasource}" {
		problems = append(problems, title+" does not ask the Prometheus that is chosen")
	}
	return problems
}

// ofEachProcess are metrics that every program in Go has: docs/metrics.md does not list them.
var ofEachProcess = []string{"process_resident_memory_bytes", "process_cpu_seconds_total"}

// scraped are labels that Prometheus adds, and le is a histogram's.
var scraped = []string{"job", "instance", "le"}

// TestDashboardAsksForWhatThereIs: each query parses, and its metrics, labels, states and reasons are documented.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	page, conditions := string(file(t, "docs/metrics.md")), string(file(t, "docs/conditions.md"))
	for _, q := range queries(t, grafana(t)) {
		for _, problem := range q.problems(page, conditions) {
			t.Errorf("%s: %s", q.panel, problem)
		}
	}
}

func (q query) problems(page, conditions string) (problems []string) {
	expr, err := parser.ParseExpr(q.expr)
	if err != nil {
		return []string{err.Error()}
	}
	grouped := slices.Clone(scraped)
	parser.Inspect(expr, func(node parser.Node, above []parser.Node) error {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			grouped = append(grouped, node.Grouping...)
		case *parser.VectorSelector:
			problems = append(problems, unexplained(node, above, page, conditions)...)
		}
		return nil
	})
	for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.legend, -1) {
		if !slices.Contains(grouped, label[1]) {
			problems = append(problems, "the legend names "+label[1]+", which no result has")
		}
	}
	return problems
}

// unexplained is what the page does not have of a selector, and of the labels by which those above it group.
func unexplained(v *parser.VectorSelector, above []parser.Node, page, conditions string) []string {
	if slices.Contains(ofEachProcess, v.Name) {
		return nil
	}
	metric := *v
	for _, part := range []string{"_bucket", "_count", "_sum"} {
		if whole, is := strings.CutSuffix(v.Name, part); is && strings.Contains(row(page, whole), "| histogram |") {
			metric.Name = whole
		}
	}
	problems := unknown(&metric, page, conditions)
	has := func(word string) bool {
		return regexp.MustCompile(`\b` + word + `\b`).MatchString(row(page, metric.Name))
	}
	for _, node := range above {
		aggregate, is := node.(*parser.AggregateExpr)
		if !is || onlyChooses(v, above) {
			continue
		}
		for _, label := range aggregate.Grouping {
			everywhere := slices.Contains(scraped, label) || strings.HasPrefix(v.Name, "kube_") && slices.Contains([]string{"namespace", "fleetworkload"}, label)
			if !everywhere && !has(label) {
				problems = append(problems, metric.Name+" has no label "+label)
			}
		}
	}
	for _, m := range v.LabelMatchers {
		for _, state := range strings.Split(m.Value, "|") {
			if m.Name == "state" && !has(state) {
				problems = append(problems, "there is no state "+state)
			}
		}
	}
	return problems
}

// onlyChooses tells whether a selector stands after "and", where its labels do not reach the result.
func onlyChooses(v *parser.VectorSelector, above []parser.Node) bool {
	path := append(slices.Clone(above), v)
	for i, node := range above {
		if both, is := node.(*parser.BinaryExpr); is && both.Op == parser.LAND && both.RHS == path[i+1] {
			return true
		}
	}
	return false
}

// sample is a series of each metric, a sample a minute. Those of one program are scraped together.
var sample = []string{
	`fleetworkload_fleetworkloads{backend="ocm",state="Ready",reason="Ready"} 5x60`,
	`fleetworkload_fleetworkloads{backend="ocm",state="Stalled",reason="RemovalHeld"} 1x60`,
	`fleetworkload_state_start_timestamp_seconds{backend="ocm",state="Stalled",reason="RemovalHeld"} 60x60`,
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="10"} 0+1x60`,
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="+Inf"} 0+2x60`,
	`fleetworkload_scheduled_clusters{backend="ocm"} 4x60`,
	`fleetworkload_updated_clusters{backend="ocm"} 4x60`,
	`fleetworkload_healthy_clusters{backend="ocm"} 3x60`,
	`fleetworkload_stale_clusters{backend="ocm"} 1x60`,
	`fleetworkload_drift_total{backend="ocm"} 0+1x60`,
	`fleetworkload_interpreter_errors_total{backend="ocm",group="example.com",kind="Gadget",reason="RuleFailed"} 0+1x60`,
	`kube_fleetworkload_status_condition{namespace="shop",fleetworkload="web",condition="Ready",reason="RemovalHeld"} 0x60`,
	`fleetworkload_migrations{from="karmada",to="ocm",phase="Verifying"} 1x60`,
	`fleetworkload_migration_wave_start_timestamp_seconds{from="karmada",to="ocm",phase="Verifying"} 60x60`,
	`fleetworkload_migration_duration_seconds_count{from="karmada",to="ocm",outcome="Completed"} 0+1x60`,
	`fleetworkload_backend_up{backend="ocm"} 1x60`,
	`fleetworkload_backend_writes_total{backend="ocm",verb="patch",code="409"} 0+1x60`,
	`fleetworkload_driver_calls_total{backend="ocm",method="Apply",code="Unavailable"} 0+1x60`,
	`fleetworkload_driver_call_duration_seconds_bucket{backend="ocm",method="Apply",le="+Inf"} 0+1x60`,
	`fleetworkload_driver_call_duration_seconds_bucket{backend="ocm",method="Apply",le="1"} 0+1x60`,
	`fleetworkload_backend_token_expiry_timestamp_seconds{backend="ocm"} 9000x60`,
	`controller_runtime_reconcile_total{controller="fleetworkload",result="success"} 0+1x60`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="fleetworkload",le="1"} 0+1x60`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="fleetworkload",le="+Inf"} 0+1x60`,
	`controller_runtime_active_workers{controller="fleetworkload"} 1x60`,
	`workqueue_depth{name="fleetworkload"} 1x60`,
	`workqueue_queue_duration_seconds_bucket{name="fleetworkload",le="1"} 0+1x60`,
	`workqueue_queue_duration_seconds_bucket{name="fleetworkload",le="+Inf"} 0+1x60`,
	`workqueue_longest_running_processor_seconds{name="fleetworkload"} 1x60`,
	`leader_election_master_status{name="fleetworkload.fleetworkload.io",job="operator",instance="a"} 1x60`,
	`process_resident_memory_bytes{job="operator",instance="a"} 1000x60`,
	`process_resident_memory_bytes{job="other",instance="a"} 9000x60`,
	`process_cpu_seconds_total{job="operator",instance="a"} 0+1x60`,
	`process_cpu_seconds_total{job="other",instance="a"} 0+9x60`,
	`rest_client_requests_total{code="200",job="operator",instance="a"} 0+1x60`,
	`rest_client_requests_total{code="500",job="other",instance="a"} 0+1x60`,
	`controller_runtime_webhook_requests_total{webhook="/validate-fleetworkload",code="200",job="operator",instance="a"} 0+1x60`,
}

// TestDashboardShowsSomething asks Prometheus' own engine: where there are series, no panel is empty, and none shows another program's.
func TestDashboardShowsSomething(t *testing.T) {
	loader, err := promqltest.NewLazyLoader("load 1m\n  "+strings.Join(sample, "\n  ")+"\n", promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loader.Close() }()
	now := time.Unix(3600, 0)
	loader.WithSamplesTill(now, func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queries(t, grafana(t)) {
			asked, err := loader.QueryEngine().NewInstantQuery(t.Context(), loader.Storage(), nil, q.expr, now)
			if err != nil {
				t.Fatalf("%s: %v", q.panel, err)
			}
			found, err := asked.Exec(t.Context()).Vector()
			if err != nil || len(found) == 0 {
				t.Errorf("%s: %v, %v", q.panel, found, err)
			}
			for _, s := range found {
				if s.Metric.Get("job") == "other" || s.Metric.Get("code") == "500" || math.IsNaN(s.F) {
					t.Errorf("%s shows %v", q.panel, s)
				}
			}
			asked.Close()
		}
	})
}

// TestFlawsOfDashboardsAreFound: the tests above can fail.
func TestFlawsOfDashboardsAreFound(t *testing.T) {
	raw := string(file(t, dashboardFile))
	for name, wrong := range map[string]string{
		"a field that is not there":    strings.Replace(raw, `"refresh"`, `"refreshing"`, 1),
		"an option that is not there":  strings.Replace(raw, `"graphMode"`, `"graphMod"`, 1),
		"a query's field is not there": strings.Replace(raw, `"legendFormat"`, `"legend"`, 1),
		"a text instead of a number":   strings.Replace(raw, `"h": 4`, `"h": "4"`, 1),
	} {
		if _, err := parsed([]byte(wrong)); err == nil || wrong == raw {
			t.Errorf("%s, and nobody minds", name)
		}
	}
	for name, change := range map[string]func(*dashboard.Panel){
		"a number that is there":  func(p *dashboard.Panel) { p.Id = cog.ToPtr[uint32](2) },
		"one on another":          func(p *dashboard.Panel) { p.GridPos.X-- },
		"one beyond the edge":     func(p *dashboard.Panel) { p.GridPos.X += 24 },
		"one without a unit":      func(p *dashboard.Panel) { p.FieldConfig.Defaults.Unit = nil },
		"one without explanation": func(p *dashboard.Panel) { p.Description = nil },
		"one of another source":   func(p *dashboard.Panel) { p.Datasource.Uid = cog.ToPtr("mine") },
	} {
		d := grafana(t)
		change(d.Panels[len(d.Panels)-1].Panel)
		if len(flaws(d)) != 1 {
			t.Errorf("%s: %v", name, flaws(d))
		}
	}
	page, conditions := string(file(t, "docs/metrics.md")), string(file(t, "docs/conditions.md"))
	for _, wrong := range []query{
		{expr: `sum(fleetworkload_backend_up`}, {expr: `no_such_metric`}, {expr: `sum by (cluster) (fleetworkload_backend_up)`},
		{expr: `fleetworkload_fleetworkloads{state="Bored"}`}, {expr: `rate(fleetworkload_migrations_bucket[5m])`},
		{expr: `sum by (backend) (fleetworkload_backend_up)`, legend: "{{state}}"},
	} {
		if len(wrong.problems(page, conditions)) != 1 {
			t.Errorf("%s with %s: %v", wrong.expr, wrong.legend, wrong.problems(page, conditions))
		}
	}
}

// TestDashboardHasEachMetric: what the operator registers is shown somewhere.
func TestDashboardHasEachMetric(t *testing.T) {
	missing := map[string]bool{}
	for _, found := range regexp.MustCompile("(?m)^\\| `(fleetworkload_\\w+)`").FindAllStringSubmatch(string(file(t, "docs/metrics.md")), -1) {
		missing[found[1]] = true
	}
	if len(missing) < 15 {
		t.Errorf("looked for %d metrics", len(missing))
	}
	for _, q := range queries(t, grafana(t)) {
		maps.DeleteFunc(missing, func(name string, _ bool) bool { return strings.Contains(q.expr, name) })
	}
	if len(missing) > 0 {
		t.Errorf("no panel shows %v", slices.Sorted(maps.Keys(missing)))
	}
}
