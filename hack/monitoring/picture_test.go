// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

var update = flag.Bool("update", false, "draw docs/dashboard.svg anew")

const pictureFile = "docs/dashboard.svg"

// rowsDrawn are the rows of the dashboard that the picture has: those that tell of FleetWorkloads.
const rowsDrawn = 2

// hold is a value for some minutes, then the next one. Where it is negative the series is not there, as Prometheus marks it after a scrape.
func hold(valuesAndMinutes ...int) string {
	var samples []string
	for pair := range slices.Chunk(valuesAndMinutes, 2) {
		for range pair[1] {
			switch {
			case pair[0] >= 0:
				samples = append(samples, strconv.Itoa(pair[0]))
			case len(samples) == 0 || samples[len(samples)-1] == "_" || samples[len(samples)-1] == "stale":
				samples = append(samples, "_")
			default:
				samples = append(samples, "stale")
			}
		}
	}
	return strings.Join(samples, " ")
}

// hour is a made-up hour of a fleet, a sample a minute: an edit after 10 minutes, a change on a cluster after 25, three hand-overs from 30 on,
// and after 45 a removal that is held.
var hour = []string{
	`fleetworkload_fleetworkloads{backend="karmada",state="Ready",reason="Ready"} ` + hold(16, 30, 13, 31),
	`fleetworkload_fleetworkloads{backend="karmada",state="Reconciling",reason="Migrating"} ` + hold(-1, 30, 3, 8, 2, 6, 1, 6, -1, 11),
	`fleetworkload_fleetworkloads{backend="ocm",state="Ready",reason="Ready"} ` + hold(8, 10, 6, 3, 7, 3, 8, 22, 9, 6, 9, 1, 8, 5, 9, 11),
	`fleetworkload_fleetworkloads{backend="ocm",state="Reconciling",reason="Progressing"} ` + hold(-1, 10, 2, 3, 1, 3, -1, 45),
	`fleetworkload_fleetworkloads{backend="ocm",state="Stalled",reason="RemovalHeld"} ` + hold(-1, 45, 1, 16),
	`fleetworkload_fleetworkloads{backend="ocm",state="Paused",reason="Paused"} ` + hold(1, 61),
	`fleetworkload_state_start_timestamp_seconds{backend="karmada",state="Reconciling",reason="Migrating"} ` + hold(-1, 30, 1800, 20, -1, 11),
	`fleetworkload_state_start_timestamp_seconds{backend="ocm",state="Reconciling",reason="Progressing"} ` + hold(-1, 10, 600, 6, -1, 45),
	`fleetworkload_state_start_timestamp_seconds{backend="ocm",state="Stalled",reason="RemovalHeld"} ` + hold(-1, 45, 2700, 16),
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="30"} ` + hold(4, 13, 4, 48),
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="120"} ` + hold(9, 13, 9, 48),
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="300"} ` + hold(12, 13, 13, 48),
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="600"} ` + hold(12, 13, 13, 3, 14, 45),
	`fleetworkload_rollout_duration_seconds_bucket{backend="ocm",le="+Inf"} ` + hold(12, 13, 13, 3, 14, 45),
	`fleetworkload_scheduled_clusters{backend="ocm"} ` + hold(24, 38, 27, 6, 30, 6, 33, 11),
	`fleetworkload_scheduled_clusters{backend="karmada"} ` + hold(48, 38, 45, 6, 42, 6, 39, 11),
	`fleetworkload_updated_clusters{backend="ocm"} ` + hold(24, 10, 18, 2, 20, 2, 22, 2, 24, 22, 27, 6, 30, 6, 33, 11),
	`fleetworkload_updated_clusters{backend="karmada"} ` + hold(48, 38, 45, 6, 42, 6, 39, 11),
	`fleetworkload_healthy_clusters{backend="ocm"} ` + hold(24, 10, 21, 4, 23, 2, 24, 22, 27, 6, 30, 6, 33, 11),
	`fleetworkload_healthy_clusters{backend="karmada"} ` + hold(48, 20, 44, 4, 48, 14, 45, 6, 42, 6, 39, 11),
	`fleetworkload_stale_clusters{backend="karmada"} ` + hold(0, 20, 4, 4, 0, 37),
	`fleetworkload_stale_clusters{backend="ocm"} ` + hold(0, 61),
	`fleetworkload_drift_total{backend="ocm"} ` + hold(2, 25, 3, 36),
	`kube_fleetworkload_status_condition{namespace="shop",fleetworkload="cart",condition="Ready",reason="Progressing"} ` + hold(-1, 10, 0, 6, -1, 45),
	`kube_fleetworkload_status_condition{namespace="shop",fleetworkload="web",condition="Ready",reason="RemovalHeld"} ` + hold(-1, 45, 0, 16),
	`fleetworkload_migrations{from="karmada",to="ocm",phase="Shadowing"} ` + hold(-1, 30, 3, 3, 2, 3, 1, 6, -1, 19),
	`fleetworkload_migrations{from="karmada",to="ocm",phase="HandingOver"} ` + hold(-1, 33, 1, 11, -1, 17),
	`fleetworkload_migrations{from="karmada",to="ocm",phase="Verifying"} ` + hold(-1, 36, 1, 14, -1, 11),
	`fleetworkload_migration_wave_start_timestamp_seconds{from="karmada",to="ocm",phase="HandingOver"} ` + hold(-1, 33, 1980, 6, 2340, 5, -1, 17),
	`fleetworkload_migration_wave_start_timestamp_seconds{from="karmada",to="ocm",phase="Verifying"} ` + hold(-1, 36, 2160, 8, 2640, 6, -1, 11),
	`fleetworkload_migration_duration_seconds_count{from="karmada",to="ocm",outcome="Completed"} ` + hold(0, 38, 1, 6, 2, 6, 3, 11),
	`fleetworkload_backend_up{backend="karmada"} ` + hold(1, 61),
	`fleetworkload_backend_up{backend="ocm"} ` + hold(1, 61),
}

// line is what one series shows: a value a minute, and NaN where there is none.
type line struct {
	legend string
	values [61]float64
}

// ask has Prometheus' engine answer the queries of a panel over the hour.
func ask(t *testing.T, loader *promqltest.LazyLoader, p dashboard.Panel) (lines []line) {
	t.Helper()
	start := time.Unix(0, 0)
	for _, q := range queries(t, board{Panels: []dashboard.PanelOrRowPanel{{Panel: &p}}}) {
		asked, err := loader.QueryEngine().NewRangeQuery(t.Context(), loader.Storage(), nil, q.expr, start, start.Add(time.Hour), time.Minute)
		if err != nil {
			t.Fatalf("%s: %v", q.panel, err)
		}
		found, err := asked.Exec(t.Context()).Matrix()
		if err != nil {
			t.Fatalf("%s: %v", q.panel, err)
		}
		for _, s := range found {
			lines = append(lines, lineOf(q, s))
		}
		asked.Close()
	}
	return lines
}

var variable = regexp.MustCompile(`\{\{(\w+)\}\}`)

func lineOf(q query, s promql.Series) line {
	l := line{legend: variable.ReplaceAllStringFunc(q.legend, func(v string) string { return s.Metric.Get(variable.FindStringSubmatch(v)[1]) })}
	for i := range l.values {
		l.values[i] = math.NaN()
	}
	for _, point := range s.Floats {
		l.values[point.T/time.Minute.Milliseconds()] = point.F
	}
	return l
}

// Sizes in pixels.
const (
	column, rowHeight = 40, 24 // of Grafana's grid
	gap               = 4
	captionHeight     = 44
)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title about">
<!-- Drawn by go test ./hack/monitoring (make pictures). Do not edit. -->
<title id="title">The dashboard</title>
<desc id="about">The panels of config/monitoring/dashboard.json that tell of FleetWorkloads and migrations, with what Prometheus' engine answers to their queries
for a made-up hour. It is not a screenshot of Grafana.</desc>
<style>
text { font: 11px system-ui, sans-serif; fill: #1f2328 }
.row { font-size: 14px; font-weight: 600 }
.title { font-weight: 600 }
.small { font-size: 10px; fill: #59636e }
.number { font-size: 30px; font-weight: 600; text-anchor: middle }
.panel { fill: #fff; stroke: #d1d9e0 }
.grid { stroke: #eaeef2 }
polyline { fill: none; stroke-width: 1.5 }
</style>
<rect width="100%%" height="100%%" fill="#f6f8fa"/>
`

// colours of lines, one after the other, and of a number's thresholds.
var (
	colours = []string{"#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf8700", "#cf222e"}
	named   = map[string]string{"blue": "#0969da", "green": "#1a7f37", "red": "#cf222e", "orange": "#bc4c00"}
)

// svg is a picture in the making.
type svg struct{ bytes.Buffer }

func (s *svg) text(class string, x, y int, says string) {
	fmt.Fprintf(s, "<text class=%q x=\"%d\" y=\"%d\">", class, x, y)
	_ = xml.EscapeText(s, []byte(says)) // a buffer takes everything
	s.WriteString("</text>\n")
}

// draw is the picture of the first rows of the dashboard.
func draw(t *testing.T, d board, loader *promqltest.LazyLoader) []byte {
	t.Helper()
	var body svg
	rows, bottom := 0, 0
	for _, p := range d.Panels {
		if p.RowPanel != nil {
			if rows++; rows > rowsDrawn {
				continue
			}
			at := p.RowPanel.GridPos
			body.text("row", gap+4, int(at.Y)*rowHeight+17, value(p.RowPanel.Title))
			continue
		}
		if rows > rowsDrawn {
			continue
		}
		at := p.Panel.GridPos
		bottom = max(bottom, int(at.Y+at.H)*rowHeight)
		body.panel(*p.Panel, ask(t, loader, *p.Panel))
	}
	body.text("small", gap+4, bottom+18, "Drawn from the dashboard's queries, as Prometheus' engine answers them for a made-up hour. Not a screenshot of Grafana.")
	body.text("small", gap+4, bottom+34, fmt.Sprintf("%d of its %d rows.", rowsDrawn, rows))
	var whole svg
	fmt.Fprintf(&whole, svgHead, 24*column, bottom+captionHeight)
	whole.Write(body.Bytes())
	whole.WriteString("</svg>\n")
	return whole.Bytes()
}

func (s *svg) panel(p dashboard.Panel, lines []line) {
	at := p.GridPos
	x, y := int(at.X)*column+gap, int(at.Y)*rowHeight+gap
	width, height := int(at.W)*column-2*gap, int(at.H)*rowHeight-2*gap
	fmt.Fprintf(s, "<rect class=\"panel\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", x, y, width, height)
	s.text("title", x+8, y+16, value(p.Title))
	unit := value(p.FieldConfig.Defaults.Unit)
	if p.Type == "stat" {
		last := lines[0].values[60]
		fmt.Fprintf(s, "<g style=\"fill: %s\">", threshold(p, last))
		fmt.Fprintf(s, "<text class=\"number\" style=\"fill: inherit\" x=\"%d\" y=\"%d\">%s</text></g>\n", x+width/2, y+height/2+20, shortly(last, unit))
		return
	}
	s.chart(x+52, y+26, width-62, height-88, unit, lines)
	s.legends(x+10, y+height-44, width-14, lines)
}

// threshold is the colour that a panel gives to a value.
func threshold(p dashboard.Panel, v float64) string {
	colour := ""
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value == nil || v >= *step.Value {
			colour = named[step.Color]
		}
	}
	return colour
}

// chart draws lines from zero to the greatest value, over the hour.
func (s *svg) chart(x, y, width, height int, unit string, lines []line) {
	top := 0.0
	for _, l := range lines {
		for _, v := range l.values {
			if v > top { // never for NaN
				top = v
			}
		}
	}
	top = cmp.Or(top, 1)
	for _, part := range []float64{0, 0.5, 1} {
		at := y + height - int(part*float64(height))
		fmt.Fprintf(s, "<line class=\"grid\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, at, x+width, at)
		s.text("small", x-46, at+4, shortly(part*top, unit))
	}
	for i, l := range lines {
		for _, stretch := range stretches(l.values) {
			fmt.Fprintf(s, "<polyline stroke=%q points=\"", colours[i%len(colours)])
			for j, minute := range stretch {
				if j > 0 {
					s.WriteByte(' ')
				}
				fmt.Fprintf(s, "%d,%d", x+minute*width/60, y+height-int(math.Round(l.values[minute]/top*float64(height))))
			}
			s.WriteString("\"/>\n")
		}
	}
	s.text("small", x, y+height+12, "an hour ago")
	s.text("small", x+width-20, y+height+12, "now")
}

// stretches are the minutes without a hole.
func stretches(values [61]float64) (all [][]int) {
	var now []int
	for minute, v := range values {
		if !math.IsNaN(v) {
			now = append(now, minute)
		}
		if len(now) > 0 && (math.IsNaN(v) || minute == 60) {
			all, now = append(all, now), nil
		}
	}
	return all
}

// legends names the lines, from left to right in as many rows as it takes.
func (s *svg) legends(x, y, width int, lines []line) {
	left := x
	for i, l := range lines {
		long := 18 + 6*len(l.legend)
		if left > x && left+long > x+width {
			left, y = x, y+15
		}
		fmt.Fprintf(s, "<rect x=\"%d\" y=\"%d\" width=\"8\" height=\"3\" fill=%q/>\n", left, y+4, colours[i%len(colours)])
		s.text("small", left+12, y+9, l.legend)
		left += long
	}
}

// shortly says a value in its unit, in a few letters.
func shortly(v float64, unit string) string {
	switch {
	case unit == "s" && v >= 60:
		return strconv.FormatFloat(v/60, 'g', 3, 64) + " min"
	case unit == "s":
		return strconv.FormatFloat(v, 'g', 3, 64) + " s"
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// TestPicture: docs/dashboard.svg is what the dashboard shows of the hour.
func TestPicture(t *testing.T) {
	loader, err := promqltest.NewLazyLoader("load 1m\n  "+strings.Join(hour, "\n  ")+"\n", promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loader.Close() }()
	var want []byte
	loader.WithSamplesTill(time.Unix(3600, 0), func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		want = draw(t, grafana(t), loader)
	})
	if *update {
		if err := os.WriteFile(root+"/"+pictureFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(file(t, pictureFile), want) {
		t.Errorf("%s is not what the dashboard shows: make pictures", pictureFile)
	}
}

// TestTheHourIsWhole: a line of the hour that is too short or too long moves what comes after it.
func TestTheHourIsWhole(t *testing.T) {
	for _, series := range hour {
		_, samples, _ := strings.Cut(series, "} ")
		if n := len(strings.Fields(samples)); n != 61 {
			t.Errorf("%d samples: %s", n, series)
		}
	}
}
