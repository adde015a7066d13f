package migration

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

// journey lets everybody do their work in a fixed order and logs what changes.
type journey struct {
	world
	log  strings.Builder
	last string
}

// note logs the record and who may write where, when they have changed.
func (j *journey) note() {
	rec := j.record.status()
	line := string(rec.Phase)
	if rec.Wave != nil {
		line += fmt.Sprintf(" wave %d", *rec.Wave)
	}
	for i, c := range rec.Clusters {
		line += fmt.Sprintf(" | %s %s: source %s, target %s", c.Name, c.Phase, j.backends[source][i].say(), j.backends[target][i].say())
	}
	if rec.Failure != "" {
		line += " | failed: " + rec.Failure
	}
	if rec.FrozenSince != nil {
		line += " | frozen"
	}
	if j.ended {
		line = "ended"
		if len(rec.History) > 0 {
			line += ": " + string(rec.History[0].Phase)
		}
	}
	if line != j.last {
		fmt.Fprintln(&j.log, line)
		j.last = line
	}
}

func (o object) say() string {
	switch {
	case !o.present && !o.agentOwns:
		return "has nothing"
	case o.leaving:
		return "leaves"
	case o.owns && o.agentOwns:
		return "owns"
	case o.owns:
		return "begins"
	case o.agentOwns:
		return "releases"
	default:
		return "observes"
	}
}

// round is one pass of the operator, a look of every agent, and a soak that ends.
func (j *journey) round() {
	if states := j.passes(j.record); len(states) > 0 {
		j.world = states[len(states)-1]
	}
	j.note()
	for i := range clusters {
		j.world = j.agent(source, i).agent(target, i)
	}
	j.world = j.soaked()
	j.note()
}

func TestTranscripts(t *testing.T) {
	for name, happens := range map[string]map[int]func(*journey){
		"there":       {},
		"turned-back": {6: func(j *journey) { j.forward = false }},
		"turned-back-and-forth": {
			6: func(j *journey) { j.forward = false },
			8: func(j *journey) { j.forward = true },
		},
		"wave-fails": {
			3: func(j *journey) { j.members[0].sick = true },
			6: func(j *journey) { j.world = j.late() },
		},
		"target-down": {
			4: func(j *journey) { j.down[target] = true },
			9: func(j *journey) { j.down[target] = false },
		},
		"scaled-meanwhile": {5: func(j *journey) { j.wanted++ }},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journey{world: start(usual)}
			j.note()
			for n := range 40 {
				if act := happens[n]; act != nil {
					act(j)
				}
				j.round()
			}
			golden := filepath.Join("testdata", "transcripts", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(j.log.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), j.log.String()); diff != "" {
				t.Errorf("(-want +got), -update if that is right:\n%s", diff)
			}
		})
	}
}

// TestAnyOrder: whoever is fast or slow, without faults it ends Completed and keeps the laws on the way.
func TestAnyOrder(t *testing.T) {
	for seed := range int64(500) {
		r := rand.New(rand.NewSource(seed))
		w := start(usual)
		w.turns, w.scalings, w.faults, w.delays = 0, 2, 0, 0
		for n := 0; !w.ended; n++ {
			steps := w.steps()
			if len(steps) == 0 || n > 2000 {
				t.Fatalf("seed %d: it stands still after %d steps: %+v", seed, n, w.record.status())
			}
			next := steps[r.Intn(len(steps))].to
			if why := wrong(w, next); why != "" {
				t.Fatalf("seed %d: %s", seed, why)
			}
			w = next
		}
		if h := w.record.status().History; len(h) == 0 || h[0].Phase != v1alpha1.MigrationPhaseCompleted {
			t.Fatalf("seed %d: it ended with %+v", seed, h)
		}
	}
}
