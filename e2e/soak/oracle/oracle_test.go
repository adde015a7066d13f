// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

var (
	web   = history.Key{Namespace: "shop", Name: "web"}
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// court is an oracle with a clock, and what members would do.
type court struct {
	*Oracle
	t    *testing.T
	now  time.Time
	last history.Spec
	uids int
}

func newCourt(t *testing.T) *court {
	t.Helper()
	facts := history.Facts{}
	for _, name := range []string{"a", "b", "c"} {
		facts[name] = history.Cluster{Joined: true, Labels: map[history.Key]bool{web: true}}
	}
	return &court{Oracle: New(facts, start), t: t, now: start}
}

func (c *court) pass(d time.Duration) { c.now = c.now.Add(d) }

func (c *court) live() Span { return Span{From: c.now, To: c.now} }

// edit carries out an edit, a minute after what was before.
func (c *court) edit(kind string, change func(*history.Spec)) {
	c.t.Helper()
	c.pass(time.Minute)
	spec := c.last.Clone()
	change(&spec)
	c.last = spec
	c.Begin(history.Action{Kind: kind, Verb: history.Apply, Workload: web, Spec: &spec}, c.now)
	c.pass(time.Second)
	c.Carried(web, "fw", int64(len(c.workload(web).versions)), c.now)
}

func (c *court) act(kind string, verb history.Verb) {
	c.pass(time.Minute)
	spec := c.last.Clone()
	c.Begin(history.Action{Kind: kind, Verb: verb, Workload: web, Spec: &spec}, c.now)
	c.pass(time.Second)
}

// fact changes what is true of a cluster.
func (c *court) fact(verb history.Verb, cluster string, change func(*history.Cluster)) {
	c.pass(time.Minute)
	now := c.Facts()[cluster]
	change(&now)
	a := history.Action{Kind: string(verb), Verb: verb, Cluster: cluster, Fact: &now}
	if verb == history.Label {
		a.Kind, a.Workload = "label off", web
	}
	c.Begin(a, c.now)
	c.pass(time.Second)
}

func (c *court) unlabel(cluster string) {
	c.fact(history.Label, cluster, func(f *history.Cluster) { f.Labels = nil })
}

// object is seen with that many replicas of the newest template.
func (c *court) object(cluster string, replicas int) {
	c.SeeObject(cluster, web, Object{UID: "o-" + cluster, Replicas: replicas, Pods: c.last.On(cluster)}, c.live())
}

// runs has members come to run what they should, and be seen settled.
func (c *court) runs(shares map[string]int) {
	c.t.Helper()
	for cluster, n := range shares {
		c.object(cluster, n)
		m := c.workload(web).on(cluster)
		for uid, p := range m.pods {
			if p.Pods != c.last.On(cluster) || len(m.pods) > n {
				c.PodGone(cluster, web, uid, c.live())
			}
		}
		for len(m.pods) < n {
			c.uids++
			uid := fmt.Sprintf("%s-%d", cluster, c.uids)
			c.SeePod(cluster, web, Pod{Name: uid, UID: uid, Pods: c.last.On(cluster), Ready: true}, c.live())
		}
	}
	c.settles()
}

func (c *court) settles() {
	c.t.Helper()
	c.pass(time.Minute)
	if !c.Settled(web, "fw", c.workload(web).last().generation, c.now) {
		c.t.Fatalf("not settled: %s", c.Differs(web))
	}
	c.pass(time.Minute)
	c.innocent("coming to rest")
}

// pod is one that runs on a cluster.
func (c *court) pod(cluster string) Pod {
	c.t.Helper()
	live := c.workload(web).on(cluster).live()
	if len(live) == 0 {
		c.t.Fatalf("no pod on %s", cluster)
	}
	return live[0]
}

func (c *court) podGoes(cluster string) {
	p := c.pod(cluster)
	p.Terminating = true
	c.SeePod(cluster, web, p, c.live())
}

func (c *court) innocent(what string) {
	c.t.Helper()
	if len(c.Violations) > 0 {
		c.t.Fatalf("%s: %s", what, c.Violations[0])
	}
}

// guilty wants one violation that says a word, and forgets it.
func (c *court) guilty(word string) {
	c.t.Helper()
	if len(c.Violations) != 1 || !strings.Contains(c.Violations[0].String(), word) {
		c.t.Fatalf("want a violation with %q: %v", word, c.Violations)
	}
	c.Violations = nil
}

// settled is two of image 1 on each of three clusters.
func settled(t *testing.T, change func(*history.Spec)) *court {
	t.Helper()
	c := newCourt(t)
	c.edit("create", func(s *history.Spec) {
		*s = history.Spec{Backend: history.Karmada, Replicas: 6, Divided: true, Pods: history.Template{Image: "1", Env: "info"}}
		if change != nil {
			change(s)
		}
	})
	c.runs(map[string]int{"a": 2, "b": 2, "c": 2})
	return c
}

func byLabel(s *history.Spec) { s.Clusters.ByLabel = true }

// Nobody has asked for anything: whatever happens is found.
func TestWhatNobodyAskedForIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(c *court)
		found string
	}{
		"a pod is deleted":       {func(c *court) { c.podGoes("a") }, "was deleted, and 1 are left"},
		"a pod is gone":          {func(c *court) { c.PodGone("a", web, c.pod("a").UID, c.live()) }, "was deleted"},
		"a pod is not ready":     {func(c *court) { p := c.pod("a"); p.Ready = false; c.SeePod("a", web, p, c.live()) }, "no longer ready"},
		"a container restarts":   {func(c *court) { p := c.pod("a"); p.Restarts++; c.SeePod("a", web, p, c.live()) }, "restarted"},
		"a pod changes in place": {func(c *court) { p := c.pod("a"); p.Pods.Image = "9"; c.SeePod("a", web, p, c.live()) }, "changed in place"},
		"an object is deleted":   {func(c *court) { c.ObjectGone("a", web, "o-a", c.live()) }, "the object was deleted"},
		"an object terminates": {func(c *court) {
			c.SeeObject("a", web, Object{UID: "o-a", Replicas: 2, Pods: c.last.On("a"), Terminating: true}, c.live())
		}, "the object was deleted"},
		"an object is another": {func(c *court) { c.SeeObject("a", web, Object{UID: "new", Replicas: 2, Pods: c.last.On("a")}, c.live()) }, "UID"},
		"fewer replicas":       {func(c *court) { c.object("a", 1) }, "changed from 2 of 1/info to 1 of"},
		"more replicas":        {func(c *court) { c.object("a", 6) }, "to 6 of"},
		"another template": {func(c *court) {
			c.SeeObject("a", web, Object{UID: "o-a", Replicas: 2, Pods: history.Template{Image: "0"}}, c.live())
		}, "to 2 of 0/"},
		"a mark on pods": {func(c *court) {
			c.SeeObject("a", web, Object{UID: "o-a", Replicas: 2, Pods: c.last.On("a"), Whole: "mark"}, c.live())
		}, "where nothing asks for it"},
		"after a hand-over": {func(c *court) { c.edit("move", func(s *history.Spec) { s.Backend = history.OCM }); c.podGoes("b") }, "was deleted"},
		"another split in a hand-over": {func(c *court) { c.edit("move", func(s *history.Spec) { s.Backend = history.OCM }); c.object("b", 3) },
			"to 3 of"},
		"a cluster that is lost": {func(c *court) {
			c.fact(history.Lose, "a", func(f *history.Cluster) { f.Lost = true })
			c.podGoes("a")
		}, "was deleted"},
		"a cluster that is tainted": {func(c *court) {
			c.fact(history.Taint, "a", func(f *history.Cluster) { f.Tainted = true })
			c.ObjectGone("a", web, "o-a", c.live())
		}, "the object was deleted"},
		"shares of a lost cluster": {func(c *court) {
			c.fact(history.Lose, "a", func(f *history.Cluster) { f.Lost = true })
			c.object("b", 3)
		}, "to 3 of"},
	} {
		t.Run(name, func(t *testing.T) {
			court := settled(t, nil)
			c.plant(court)
			court.guilty(c.found)
		})
	}
}

// What was asked for is not found, and what goes beyond it is.
func TestAnEditGivesLeave(t *testing.T) {
	t.Run("fewer", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("scale down", func(s *history.Spec) { s.Replicas = 3 })
		c.object("a", 1)
		c.podGoes("a")
		c.innocent("one pod may go")
		c.podGoes("a")
		c.guilty("and 0 are left")
	})
	t.Run("fewer than clusters", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("scale down", func(s *history.Spec) { s.Replicas = 2 })
		c.object("c", 0)
		c.podGoes("c")
		c.podGoes("c")
		c.innocent("c gets nothing, and may keep its object")
		c.object("a", 0)
		c.guilty("to 0 of")
	})
	t.Run("another image", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("image", func(s *history.Spec) { s.Pods.Image = "2" })
		c.object("a", 2)
		c.podGoes("a")
		c.podGoes("a")
		p := c.pod("b")
		p.Ready = false
		c.SeePod("b", web, p, c.live())
		c.innocent("all pods are replaced")
		c.ObjectGone("a", web, "o-a", c.live())
		c.guilty("the object was deleted")
	})
	t.Run("an override of one cluster", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("override", func(s *history.Spec) { s.Overrides = map[string]history.Override{"a": {Image: "2"}} })
		c.podGoes("a")
		c.innocent("pods on a are replaced")
		c.podGoes("b")
		c.guilty("on b")
	})
	t.Run("a cluster is left", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("narrow", func(s *history.Spec) { s.Clusters.Exclude = []string{"c"} })
		c.ObjectGone("c", web, "o-c", c.live())
		c.podGoes("c")
		c.innocent("c may be left")
		c.podGoes("a")
		c.guilty("on a")
	})
	t.Run("until it is settled", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("image", func(s *history.Spec) { s.Pods.Image = "2" })
		c.runs(map[string]int{"a": 2, "b": 2, "c": 2})
		c.podGoes("a")
		c.guilty("was deleted")
	})
	t.Run("both of two that follow each other", func(t *testing.T) {
		c := settled(t, nil)
		c.edit("scale down", func(s *history.Spec) { s.Replicas = 3 })
		c.edit("scale up", func(s *history.Spec) { s.Replicas = 9 })
		c.object("a", 3)
		c.object("b", 1)
		c.innocent("either may be carried out")
		c.object("b", 2)
		c.innocent("what was there may be again") // it is what was settled
		c.object("b", 4)
		c.guilty("to 4 of")
	})
}

func TestDeletion(t *testing.T) {
	t.Run("deletes", func(t *testing.T) {
		c := settled(t, nil)
		c.act("delete", history.Delete)
		c.ObjectGone("a", web, "o-a", c.live())
		c.podGoes("a")
		c.innocent("all may go")
		c.pass(time.Minute)
		c.Gone(web, c.now)
		c.pass(time.Minute)
		c.object("a", 2)
		c.guilty("was created")
	})
	t.Run("orphans", func(t *testing.T) {
		c := settled(t, nil)
		c.last.Orphan = true
		c.act("abandon", history.Delete)
		c.Gone(web, c.now)
		c.podGoes("a")
		c.guilty("was deleted")
		c.fact(history.Label, "b", func(f *history.Cluster) { f.Labels = nil })
		c.podGoes("b")
		c.guilty("was deleted")
		c.last.Orphan = false
		c.edit("adopt", func(s *history.Spec) { s.Adopt = true })
		c.ObjectGone("a", web, "o-a", c.live())
		c.guilty("the object was deleted")
	})
	t.Run("clears", func(t *testing.T) {
		c := settled(t, nil)
		c.last.Orphan = true
		c.act("abandon", history.Delete)
		c.Gone(web, c.now)
		c.act("clear", history.Clear)
		c.ObjectGone("a", web, "o-a", c.live())
		c.podGoes("a")
		c.innocent("a person has cleared it")
	})
}

// Law 2.
func TestLabels(t *testing.T) {
	t.Run("a third may go", func(t *testing.T) {
		c := settled(t, byLabel)
		c.unlabel("a")
		c.ObjectGone("a", web, "o-a", c.live())
		c.object("b", 3)
		c.innocent("a third is not held")
	})
	t.Run("two thirds may not, however slowly", func(t *testing.T) {
		c := settled(t, byLabel)
		c.unlabel("a")
		c.ObjectGone("a", web, "o-a", c.live())
		for _, uid := range []string{c.pod("a").UID, ""} {
			c.PodGone("a", web, uid, c.live())
		}
		c.PodGone("a", web, c.pod("a").UID, c.live())
		c.runs(map[string]int{"b": 3, "c": 3})
		c.unlabel("b")
		c.ObjectGone("b", web, "o-b", c.live())
		c.guilty("the object was deleted")
	})
	t.Run("not while it is suspended", func(t *testing.T) {
		c := settled(t, byLabel)
		c.edit("suspend", func(s *history.Spec) { s.Suspended = true })
		c.settles()
		c.unlabel("a")
		c.ObjectGone("a", web, "o-a", c.live())
		c.guilty("the object was deleted")
	})
	t.Run("a person lets it go", func(t *testing.T) {
		c := settled(t, byLabel)
		c.unlabel("a")
		c.unlabel("b")
		c.object("c", 6)
		c.guilty("to 6 of")
		c.object("c", 2)
		c.act("confirm", history.Confirm)
		c.object("c", 6)
		c.ObjectGone("a", web, "o-a", c.live())
		c.innocent("it was confirmed")
	})
	t.Run("one goes and another comes", func(t *testing.T) {
		c := settled(t, byLabel)
		c.unlabel("c")
		c.ObjectGone("c", web, "o-c", c.live())
		for len(c.workload(web).on("c").live()) > 0 {
			c.podGoes("c")
		}
		c.runs(map[string]int{"a": 3, "b": 3})
		c.unlabel("a")
		c.fact(history.Label, "c", func(f *history.Cluster) { f.Labels = map[history.Key]bool{web: true} })
		c.object("b", 2)
		c.innocent("a is gone on with for a while, and shares with b and c")
		c.object("b", 1)
		c.guilty("to 1 of")
	})
	t.Run("what has never run is not held", func(t *testing.T) {
		c := newCourt(t)
		c.edit("create", func(s *history.Spec) { *s = history.Spec{Replicas: 6, Divided: true}; byLabel(s) })
		c.unlabel("a")
		c.unlabel("b")
		c.object("c", 6)
		c.innocent("nothing ran when the labels went")
	})
	t.Run("an edit does not lift what is held", func(t *testing.T) {
		c := settled(t, byLabel)
		c.unlabel("a")
		c.unlabel("b")
		c.edit("scale up", func(s *history.Spec) { s.Replicas = 9 })
		c.object("c", 3)
		c.innocent("what stays may grow")
		c.ObjectGone("a", web, "o-a", c.live())
		c.innocent("a alone might go before b was held")
		c.ObjectGone("b", web, "o-b", c.live())
		c.guilty("the object was deleted")
	})
}

// Until an edit is carried out, a removal is measured by what ran before it, too: see unheld.
func TestARemovalBesideAnEdit(t *testing.T) {
	most := func(s *history.Spec) { s.Weights = map[string]int{"a": 4, "b": 1, "c": 1} }
	t.Run("that is not carried out", func(t *testing.T) {
		c := settled(t, byLabel)
		c.edit("weights", most)
		c.unlabel("a")
		c.object("b", 3)
		c.innocent("two of the six that run go")
		c.ObjectGone("a", web, "o-a", c.live())
		c.podGoes("a")
		c.podGoes("a")
		c.runs(map[string]int{"b": 3, "c": 3})
	})
	t.Run("that is carried out", func(t *testing.T) {
		c := settled(t, byLabel)
		c.edit("weights", most)
		for _, cluster := range []string{"b", "c"} {
			c.object(cluster, 1)
			c.PodGone(cluster, web, c.pod(cluster).UID, c.live())
		}
		c.runs(map[string]int{"a": 4, "b": 1, "c": 1})
		c.unlabel("a")
		c.object("b", 3)
		c.guilty("to 3 of")
	})
	for name, tc := range map[string]struct {
		before, after func(*history.Spec)
		gone          []string
		guilty        string
	}{
		"that chooses otherwise, before a label goes": {func(*history.Spec) {}, byLabel, []string{"a"}, ""},
		"that chooses otherwise by the same labels":   {byLabel, func(s *history.Spec) { s.Clusters.Exclude = []string{"d"} }, []string{"a"}, "to 3 of"},
		"that chooses as before":                      {byLabel, func(s *history.Spec) { s.Pods.Image = "2" }, []string{"a"}, "to 3 of"},
		"that chooses none any more":                  {func(*history.Spec) {}, byLabel, []string{"b", "c", "a"}, "the object was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			c.edit("create", func(s *history.Spec) {
				*s = history.Spec{Backend: history.Karmada, Replicas: 6, Divided: true, Pods: history.Template{Image: "1", Env: "info"}}
				most(s)
				tc.before(s)
			})
			c.runs(map[string]int{"a": 4, "b": 1, "c": 1})
			c.edit("edit", tc.after)
			for _, cluster := range tc.gone {
				c.unlabel(cluster)
			}
			if len(tc.gone) == 1 {
				c.object("b", 3)
			} else {
				c.ObjectGone("a", web, "o-a", c.live())
			}
			if tc.guilty != "" {
				c.guilty(tc.guilty)
				return
			}
			c.innocent("the edit asks for it")
			c.ObjectGone("a", web, "o-a", c.live())
			for range 4 {
				c.podGoes("a")
			}
			c.runs(map[string]int{"b": 3, "c": 3})
		})
	}
}

// A person has to confirm what takes most of it away, and no more.
func TestHolds(t *testing.T) {
	c := settled(t, byLabel)
	c.unlabel("a")
	if c.Holds(web) {
		t.Error("a third may go")
	}
	c.unlabel("b")
	if !c.Holds(web) {
		t.Error("two thirds may not")
	}
	if c.act("confirm", history.Confirm); c.Holds(web) {
		t.Error("it was confirmed")
	}
	c.fact(history.Label, "a", func(f *history.Cluster) { f.Labels = map[history.Key]bool{web: true} })
	c.unlabel("c")
	if !c.Holds(web) {
		t.Error("all that is left may not go to another cluster")
	}
	c.last.Orphan = true
	if c.act("abandon", history.Delete); c.Holds(web) {
		t.Error("nobody has it any more")
	}
}

// A cluster that has lost its label may be gone on with for a while, and so may several that have lost it one after the other.
func TestUnlabelled(t *testing.T) {
	c := settled(t, byLabel)
	c.fact(history.Label, "a", func(f *history.Cluster) {
		f.Labels = map[history.Key]bool{web: true, {Namespace: "shop", Name: "other"}: true}
	})
	if c.justUnlabelled(web, c.now) {
		t.Error("it has got a label")
	}
	c.unlabel("a")
	c.unlabel("b")
	if !c.justUnlabelled(web, c.now.Add(patience-2*time.Second)) || c.justUnlabelled(web, c.now.Add(patience)) || c.justUnlabelled(history.Key{Name: "none"}, c.now) {
		t.Error("it is gone on with for a while, and by this workload")
	}
	var seen []string
	for _, facts := range c.seen(web, 0, len(c.facts)-1) {
		labelled := ""
		for _, name := range facts.Names() {
			if facts[name].Labels[web] {
				labelled += name
			}
		}
		seen = append(seen, labelled)
	}
	if got := strings.Join(seen, " "); got != "c bc abc" {
		t.Errorf("acted upon may be %s", got)
	}
	c.fact(history.Leave, "c", func(f *history.Cluster) { *f = history.Cluster{} })
	if c.justUnlabelled(web, c.now) {
		t.Error("one that has left the fleet is not gone on with")
	}
}

func TestSuspension(t *testing.T) {
	c := settled(t, nil)
	c.edit("suspend", func(s *history.Spec) { s.Suspended = true })
	c.settles()
	c.edit("image", func(s *history.Spec) { s.Pods.Image = "2"; s.Replicas = 3 })
	c.object("a", 2)
	c.guilty("changed from 2 of 1/info to 2 of 2/info")
	c.podGoes("b")
	c.guilty("was deleted")
	c.edit("resume", func(s *history.Spec) { s.Suspended = false })
	c.object("b", 1)
	c.podGoes("b")
	c.innocent("it was resumed")
	for _, later := range []time.Duration{0, time.Minute} {
		c := settled(t, byLabel)
		c.edit("suspend", func(s *history.Spec) { s.Suspended = true })
		c.settles()
		c.unlabel("a")
		c.fact(history.Label, "a", func(f *history.Cluster) { f.Labels = map[history.Key]bool{web: true} })
		c.pass(later - time.Minute)
		c.edit("resume", func(s *history.Spec) { s.Suspended = false })
		if c.object("b", 3); later == 0 {
			c.innocent("that the label is back was not known yet")
		} else {
			c.guilty("to 3 of")
		}
	}
}

// A cluster that leaves takes everything along.
func TestLeaving(t *testing.T) {
	c := settled(t, nil)
	c.fact(history.Leave, "a", func(f *history.Cluster) { *f = history.Cluster{} })
	c.ObjectGone("a", web, "o-a", c.live())
	c.podGoes("a")
	c.object("b", 3)
	c.innocent("a has left")
	c.podGoes("b")
	c.guilty("on b")
}

// A cluster that gets nothing keeps its object while the workload is handed over. It gets it back when it leaves and comes back meanwhile.
func TestKeptOnAClusterThatLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		before int
		leaves bool
		want   string
	}{
		"it was kept without pods":            {0, true, ""},
		"it had pods":                         {2, true, "created with 0"},
		"it was removed, and not taken along": {0, false, "created with 0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := settled(t, func(s *history.Spec) { s.Clusters.ByLabel = true })
			c.unlabel("a")
			if test.before == 0 {
				c.object("a", 0)
			}
			joined := c.Facts()["a"]
			if test.leaves {
				c.fact(history.Leave, "a", func(f *history.Cluster) { *f = history.Cluster{} })
			}
			c.ObjectGone("a", web, "o-a", c.live())
			c.fact(history.Join, "a", func(f *history.Cluster) { *f = joined })
			c.pass(time.Minute)
			if c.object("a", 0); test.want == "" {
				c.innocent("it gets back what it had")
			} else {
				c.guilty(test.want)
			}
		})
	}
}

// While a cluster cannot be had, a workload that is not there may be left out or wait for it.
func TestNewOnALostCluster(t *testing.T) {
	c := newCourt(t)
	c.fact(history.Lose, "c", func(f *history.Cluster) { f.Lost = true })
	c.edit("create", func(s *history.Spec) { *s = history.Spec{Replicas: 6, Divided: true} })
	c.object("a", 3)
	c.object("b", 2)
	c.innocent("both splits are right")
	c.object("b", 6)
	c.guilty("to 6 of")
}

// What an earlier FleetWorkload has left on such a cluster is not known of when it is to be adopted.
func TestAdoptedOnALostCluster(t *testing.T) {
	c := settled(t, nil)
	c.last.Orphan = true
	c.act("abandon", history.Delete)
	c.Gone(web, c.now)
	c.last.Orphan = false
	c.edit("adopt", func(s *history.Spec) { s.Adopt = true })
	c.fact(history.Lose, "c", func(f *history.Cluster) { f.Lost = true })
	c.object("a", 3)
	c.object("b", 3)
	c.innocent("both splits are right")
	c.object("b", 6)
	c.guilty("to 6 of")
}

// What was missed while a watch was broken is judged by all that was asked for meanwhile.
func TestABrokenWatch(t *testing.T) {
	c := settled(t, nil)
	broken := c.now
	c.edit("image", func(s *history.Spec) { s.Pods.Image = "2" })
	uid := c.pod("a").UID
	c.runs(map[string]int{"b": 2, "c": 2, "a": 2})
	c.SeePod("a", web, Pod{UID: uid, Pods: history.Template{Image: "1", Env: "info"}, Ready: true}, c.live())
	c.PodGone("a", web, uid, Span{From: broken, To: c.now})
	c.innocent("it went while nobody looked")
}

func TestAViolationTellsTheLastActions(t *testing.T) {
	c := settled(t, nil)
	for range 12 {
		c.pass(time.Second)
		c.Begin(history.Action{Kind: "kill", Verb: history.Kill, Process: "etcd"}, c.now)
	}
	c.podGoes("a")
	v := c.Violations[0]
	if len(v.Actions) != lastActions || !strings.Contains(v.Actions[9], "0.0s before: kill etcd") || v.At != c.now || v.Workload != web {
		t.Errorf("got %+v", v)
	}
}

func TestSettledNeedsMembersToBeSo(t *testing.T) {
	c := newCourt(t)
	c.edit("create", func(s *history.Spec) {
		*s = history.Spec{Replicas: 1, Clusters: history.Selection{Names: []string{"a"}}}
	})
	generation := c.workload(web).last().generation
	if c.pass(time.Minute); c.Settled(web, "fw", generation, c.now) {
		t.Error("nothing runs")
	}
	c.object("a", 1)
	c.SeePod("a", web, Pod{UID: "p", Ready: true}, c.live())
	if c.Settled(web, "fw", generation-1, c.now) || c.Settled(web, "other", generation, c.now) {
		t.Error("it speaks of something else")
	}
	c.Begin(history.Action{Kind: "label off", Verb: history.Label, Workload: web, Cluster: "b", Fact: &history.Cluster{Joined: true}}, c.now)
	if c.Settled(web, "fw", generation, c.now.Add(time.Second)) {
		t.Error("facts have just changed")
	}
	if c.Settled(web, "fw", generation, c.now.Add(quiet+time.Second)) {
		t.Error("a cluster without its label may still be gone on with")
	}
	if !c.Settled(web, "fw", generation, c.now.Add(time.Minute)) {
		t.Errorf("it is settled: %s", c.Differs(web))
	}
}
