// SPDX-License-Identifier: Apache-2.0

package history

import "testing"

// Labels come and go in the order of their workload's actions, all else in that of the cluster's: neither undoes the other.
func TestFactsAfter(t *testing.T) {
	web, api := Key{Namespace: "shop", Name: "web"}, Key{Namespace: "shop", Name: "api"}
	label := func(on bool, fact Cluster) Action {
		fact.Labels = map[Key]bool{web: on}
		return Action{Verb: Label, Workload: web, Cluster: "a", Fact: &fact}
	}
	start := Facts{"a": {Joined: true, Labels: map[Key]bool{api: true}}}
	lost := start.After(Action{Verb: Lose, Cluster: "a", Fact: &Cluster{Joined: true, Lost: true}})
	if c := lost["a"]; !c.Lost || !c.Labels[api] {
		t.Errorf("lost: %+v", c)
	}
	labelled := lost.After(label(true, Cluster{Joined: true}))
	if c := labelled["a"]; !c.Lost || !c.Labels[api] || !c.Labels[web] {
		t.Errorf("labelled: %+v", c)
	}
	if c := labelled.After(label(false, Cluster{Joined: true}))["a"]; !c.Lost || !c.Labels[api] || c.Labels[web] {
		t.Errorf("label off: %+v", c)
	}
	gone := labelled.After(Action{Verb: Leave, Cluster: "a", Fact: &Cluster{}})
	if c := gone["a"]; c.Joined || len(c.Labels) > 0 {
		t.Errorf("left: %+v", c)
	}
	if c := gone.After(label(true, Cluster{Joined: true}))["a"]; c.Joined || len(c.Labels) > 0 {
		t.Errorf("labelled after it left: %+v", c)
	}
}
