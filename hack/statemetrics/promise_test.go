// SPDX-License-Identifier: Apache-2.0

package statemetrics

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	generator "k8s.io/kube-state-metrics/v2/pkg/metric_generator"
	metricsstore "k8s.io/kube-state-metrics/v2/pkg/metrics_store"
	"sigs.k8s.io/yaml"
)

// TestMain keeps quiet what kube-state-metrics logs.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

var update = flag.Bool("update", false, "write testdata/*.prom anew")

// scraped is what Prometheus is given of a FleetWorkload, as text.
func scraped(t *testing.T, r customresourcestate.Resource, fw *unstructured.Unstructured) (string, error) {
	t.Helper()
	factory, err := customresourcestate.NewCustomResourceMetrics(r)
	if err != nil {
		return "", fmt.Errorf("compile the configuration: %w", err)
	}
	families := factory.MetricFamilyGenerators()
	store := metricsstore.NewMetricsStore(generator.ExtractMetricFamilyHeaders(families), generator.ComposeMetricGenFuncs(families))
	if err := store.Add(fw); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, writer := range metricsstore.SanitizeHeaders(expfmt.NewFormat(expfmt.TypeTextPlain), metricsstore.MetricsWriterList{
		metricsstore.NewMetricsWriter(factory.Name(), store),
	}) {
		if err := writer.WriteAll(&text); err != nil {
			t.Fatal(err)
		}
	}
	return text.String(), nil
}

// fleetWorkloads are the fixtures, by name.
func fleetWorkloads(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fw := &unstructured.Unstructured{}
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := fw.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(file, ".yaml")] = fw
	}
	return all
}

// TestMetrics: of each FleetWorkload there are the series of the file beside it.
func TestMetrics(t *testing.T) {
	r := configuration(t)
	for name, fw := range fleetWorkloads(t) {
		got, err := scraped(t, r, fw)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(name+".prom", []byte(series(got)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name + ".prom")
		if err != nil {
			t.Fatal(err)
		}
		if got := series(got); got != string(want) {
			t.Errorf("%s.prom says\n%s\nand this was made:\n%s", name, want, got)
		}
	}
}

// whose are the labels that kube-state-metrics adds to each series.
const whose = `customresource_group="apps.fleetworkload.io",customresource_kind="FleetWorkload",customresource_version="v1alpha1",`

// series leaves out what is the same everywhere, and sorts: a set of states comes in any order.
func series(text string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
	slices.Sort(lines)
	return strings.ReplaceAll(strings.Join(lines, ""), whose, "")
}

// everySeries are the labels that it has besides those of the page's table.
var everySeries = []string{"customresource_group", "customresource_kind", "customresource_version", "fleetworkload", "namespace"}

// promised are the labels of each metric of docs/metrics.md, sorted.
func promised(t *testing.T) map[string][]string {
	t.Helper()
	_, section, there := strings.Cut(string(file(t, "docs/metrics.md")), "\n## Of single FleetWorkloads\n")
	if !there {
		t.Fatal("docs/metrics.md has no section on single FleetWorkloads")
	}
	for _, label := range everySeries {
		if !strings.Contains(section, "`"+label+"`") {
			t.Errorf("the page does not tell of the label %s", label)
		}
	}
	all, word := map[string][]string{}, regexp.MustCompile("`([a-z_]+)`")
	for _, row := range regexp.MustCompile(`(?m)^\| (.*kube_fleetworkload.*?) \| (.*?) \|`).FindAllStringSubmatch(section, -1) {
		labels := slices.Clone(everySeries)
		for _, label := range word.FindAllStringSubmatch(row[2], -1) {
			labels = append(labels, label[1])
		}
		for _, name := range word.FindAllStringSubmatch(row[1], -1) {
			all[name[1]] = slices.Sorted(slices.Values(labels))
		}
	}
	return all
}

// broken is what of the page's promise a configuration does not keep, with all fixtures together.
func broken(t *testing.T, raw []byte) []string {
	t.Helper()
	r, err := decode(raw)
	if err != nil {
		return []string{err.Error()}
	}
	page, made := promised(t), map[string][]string{}
	for name, fw := range fleetWorkloads(t) {
		text, err := scraped(t, r, fw)
		if err != nil {
			return []string{err.Error()}
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			return []string{fmt.Sprintf("Prometheus does not understand what is made of %s: %v", name, err)}
		}
		for family, metrics := range families {
			for _, m := range metrics.GetMetric() {
				made[family] = append(made[family], labels(m)...)
			}
		}
	}
	var problems []string
	for _, family := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(page)), maps.Keys(made))))) {
		if got := slices.Compact(slices.Sorted(slices.Values(made[family]))); !slices.Equal(got, page[family]) {
			problems = append(problems, fmt.Sprintf("%s has the labels %v, and the page says %v", family, got, page[family]))
		}
	}
	return problems
}

func labels(m *dto.Metric) []string {
	names := make([]string, 0, len(m.GetLabel()))
	for _, pair := range m.GetLabel() {
		names = append(names, pair.GetName())
	}
	return names
}

// TestThePageIsTrue: kube-state-metrics makes what docs/metrics.md tells of, with those labels, and nothing else.
func TestThePageIsTrue(t *testing.T) {
	for _, problem := range broken(t, file(t, path)) {
		t.Error(problem)
	}
}

// TestATypoIsFound: the test above can fail, by whatever is mistyped.
func TestATypoIsFound(t *testing.T) {
	good := string(file(t, path))
	for right, wrong := range map[string]string{
		"path: [status, clusterSummary, stale]": "path: [status, clusterSumary, stale]",
		"valueFrom: [lastTransitionTime]":       "valueFrom: [lastTransitonTime]",
		"wanted_backend: [spec, backend]":       "wanted_backend: [spec, bakend]",
		"revision: [status, revision]":          "revison: [status, revision]",
		"nilIsZero: true":                       "nilIsZeros: true",
		"labelName: phase":                      "labelName: phases",
		"type: StateSet":                        "type: StatesSet",
		"name: spec_suspend":                    "name: spec_suspended",
		"metricNamePrefix: kube_fleetworkload":  "metricNamePrefix: kube_fleetworkloads",
		"fleetworkload: [metadata, name]":       "fleetworkload: [metadata, nam]",
	} {
		if strings.Count(good, right) != 1 {
			t.Fatalf("%q is there %d times", right, strings.Count(good, right))
		}
		if problems := broken(t, []byte(strings.Replace(good, right, wrong, 1))); len(problems) == 0 {
			t.Errorf("%q was not found", wrong)
		} else {
			t.Logf("%q: %s", wrong, problems[0])
		}
	}
}
