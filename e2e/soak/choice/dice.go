// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"math/rand/v2"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

// dice are where choices come from.
type dice struct{ *rand.Rand }

// between includes both ends.
func (d dice) between(least, most int) int { return least + d.IntN(most-least+1) }

// chance is true in so many of a hundred cases.
func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) word(words ...string) string { return words[d.IntN(len(words))] }

// pick takes one of all, nil when there is none.
func pick[T any](d dice, all []*T) *T {
	if len(all) == 0 {
		return nil
	}
	return all[d.IntN(len(all))]
}

func (d dice) backend() string { return d.word(history.Karmada, history.OCM) }

func (d dice) selection() history.Selection {
	switch roll := d.between(0, 99); {
	case roll < 40:
		members := Members()
		for range d.between(0, len(members)-1) {
			members = without(members, d.word(members...))
		}
		return history.Selection{Names: members}
	case roll < 70:
		return history.Selection{ByLabel: true}
	case roll < 85:
		return history.Selection{Exclude: []string{d.word(Members()...)}}
	default:
		return history.Selection{}
	}
}

func (d dice) weights() map[string]int {
	weights := map[string]int{}
	for _, name := range Members() {
		weights[name] = d.between(1, 5)
	}
	return weights
}

func (d dice) waves() history.Waves {
	if d.chance(60) {
		return history.Waves{}
	}
	return history.Waves{Size: d.word("1", "2", "50%"), Soak: d.between(0, 3)}
}
