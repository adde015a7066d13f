package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// newQueue's items are such as a1, the first of the namespace a, a2!, which has begun, a3*, which is edited, and a4?, which is not new.
func newQueue(workers int) *Queue[string] {
	return NewQueue(workers, func(item string) string { return item[:1] }, stage)
}

func begun(item string) bool { return stage(item) == Begun }

func stage(item string) Stage {
	switch {
	case strings.HasSuffix(item, "!"):
		return Begun
	case strings.HasSuffix(item, "*"):
		return Edited
	case strings.HasSuffix(item, "?"):
		return Other
	}
	return New
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		workers int
		// steps: +a1 comes, -a1 is done, > a free worker asks: for what, want tells; a dash when nothing is ready. [ holds what is new,
		// (a that of the namespace a, and ] lets it go.
		steps, want string
	}{
		{"within a namespace, who comes first goes first", 8, "+a1 +a2 +a3 > > >", "a1 a2 a3"},
		{"namespaces take turns", 8, "+a1 +a2 +a3 +b1 +b2 +c1 > > > > > >", "a1 b1 c1 a2 b2 a3"},
		{"who comes is behind those that wait", 8, "+a1 +a2 > +b1 > >", "a1 a2 b1"},
		{"who had a turn is behind those that wait", 8, "+a1 +b1 > +a2 > >", "a1 b1 a2"},
		{"one namespace leaves workers free", 8, "+a1 +a2 +a3 +a4 +a5 +a6 > > > > > > +b1 >", "a1 a2 a3 a4 a5 - b1"},
		{"who is held back keeps its place", 3, "+a1 +a2 +a3 > > > +b1 +b2 > -a1 > -b1 >", "a1 a2 - b1 - a3"},
		{"who is held back goes on when another is done", 4, "+a1 +b1 +b2 +b3 > > > > -a1 >", "a1 b1 b2 - b3"},
		{"the last free worker is for who has none", 2, "+a1 +a2 > > +b1 >", "a1 - b1"},
		{"one worker serves in turn", 1, "+a1 +a2 +b1 > > -a1 > -b1 >", "a1 - b1 a2"},
		{"what has begun goes first", 8, "+a1 +a2 +a3! > > >", "a3! a1 a2"},
		{"among what has begun, who comes first goes first", 8, "+a1 +a2! +a3! > > >", "a2! a3! a1"},
		{"what has not begun goes each fourth time", 8, "+a1 +a2 +a3! +a4! +a5! +a6! +a7! > > > > -a3! -a4! -a5! -a1 > > >", "a3! a4! a5! a1 a6! a7! a2"},
		{"what has not begun waits for no row that nobody saw", 8, "+a1! +a2! +a3! +a4! > > > > +a5 +a6! >", "a1! a2! a3! a4! a5"},
		{"what has begun does not go before another namespace's turn", 8, "+a1 +b1 > +a2! > >", "a1 b1 a2!"},
		{"what is held waits, and what has begun goes on", 8, "[ +a1 +b1 +a2! > > ] > >", "a2! - b1 a1"},
		{"what is held goes in no fourth turn", 8, "+a1 +a2! +a3! +a4! +a5! +a6! [ > > > > > -a2! > ] >", "a2! a3! a4! a5! a6! - a1"},
		{"what is neither new nor begun is not held", 8, "[ +a1 +a2? +b1 +a3! > > > ] > >", "a3! a2? - b1 a1"},
		{"what is neither new nor begun goes in its turn", 8, "+a1 +a2? +a3 > > >", "a1 a2? a3"},
		{"what is held in one namespace holds up no other", 8, "(a +a1 +b1 +a2! +a3 > > > ] > >", "a2! b1 - a1 a3"},
		{"what is edited goes before the rest", 8, "+a1? +a2 +a3* +a4* > > > >", "a3* a4* a1? a2"},
		{"what has begun goes before what is edited", 8, "+a1* +a2! > >", "a2! a1*"},
		{"what is edited goes each fourth time", 8, "+a1? +a2* +a3! +a4! +a5! +a6! > > > > >", "a3! a4! a5! a2* a6!"},
		{"beside what is edited the rest goes each fourth time", 8, "+a1? +a2* +a3* +a4* +a5* > > > > >", "a2* a3* a4* a1? a5*"},
		{"what is edited is not held, and what is held goes in no fourth turn", 8, "[ +a1 +a2* +a3* +a4* +a5* > > > > > -a2* > ] >", "a2* a3* a4* a5* - - a1"},
		{"beside what has begun, others have a quarter of the workers", 8, "+a1! +a2? +a3? +a4? > > > > -a1! >", "a1! a2? a3? - a4?"},
		{"beside what is edited, too", 8, "+a1* +a2? +a3? +a4? > > > > -a1* >", "a1* a2? a3? - a4?"},
		{"and in another namespace", 8, "+a1! +b2? +b3? +b4? > > > > -b2? >", "a1! b2? b3? - b4?"},
		{"each namespace has its quarter", 8, "+a1! +b2? +c3? +b4? +c5? +b6? > > > > > >", "a1! b2? c3? b4? c5? -"},
		{"what is new is none of the others", 8, "+a1! +a2? +a3? +a4? +a5 > > > > >", "a1! a2? a3? a5 -"},
		{"one of few workers is for others", 3, "+a1! +a2? +b3? > > -a1! >", "a1! b3? a2?"},
		{"nobody works on it: nothing is freed", 2, "+a1 +a2 +b1 > > -b1 -c1 > -a1 >", "a1 b1 - a2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newQueue(c.workers)
			var got []string
			for _, step := range strings.Fields(c.steps) {
				switch {
				case step[0] == '+':
					q.Push(step[1:])
				case step[0] == '-':
					q.Done(step[1:])
				case step == "[":
					q.Hold(func(string) bool { return true })
				case step == "]":
					q.Hold(nil)
				case step[0] == '(':
					q.Hold(func(namespace string) bool { return namespace == step[1:] })
				case q.Ready():
					got = append(got, q.Pop())
				default:
					got = append(got, "-")
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestTouch: what is no longer new before it had its turn is not held any more, and keeps its place. What is edited goes before the others.
func TestTouch(t *testing.T) {
	stages := map[string]Stage{"a1": New, "a2": Other, "a3": New, "a4": New, "a5": Other, "a6": Other, "a7": New, "b1": New}
	q := NewQueue(8, func(item string) string { return item[:1] }, func(item string) Stage { return stages[item] })
	q.Hold(func(string) bool { return true })
	for _, item := range []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "b1"} {
		q.Push(item)
	}
	stages["a3"], stages["a6"], stages["a7"] = Other, Edited, Edited
	for _, item := range []string{"a7", "a1", "a2", "a3", "a6", "a6", "b1", "c1"} {
		q.Touch(item)
	}
	var got []string
	for q.Ready() {
		got = append(got, q.Pop())
	}
	if got := strings.Join(got, " "); got != "a6 a7 a2 a3" || q.Len() != 4 {
		t.Errorf("%s, and %d wait", got, q.Len())
	}
	q.Done("a6")
	if q.Ready() {
		t.Error("a7, which is edited, is worked on, and three others are at once")
	}
	q.Done("a7")
	if !q.Ready() || q.Pop() != "a5" {
		t.Error("a5 waits for nothing")
	}
}

// TestShares: how many workers those have at most that always wait for more, whoever of them comes first and whatever ends when.
func TestShares(t *testing.T) {
	for _, c := range []struct{ workers, namespaces, want int }{
		{1, 1, 1}, {2, 1, 1}, {3, 1, 2}, {4, 1, 3}, {8, 1, 5}, {12, 1, 8}, {16, 1, 11},
		{1, 2, 1}, {2, 2, 2}, {3, 2, 3}, {4, 2, 4}, {5, 2, 4}, {8, 2, 7}, {12, 2, 11}, {8, 3, 8},
	} {
		if got := most(c.workers, shares{}, c.namespaces, map[shares]bool{}); got != c.want {
			t.Errorf("of %d workers %d namespaces have up to %d, want %d", c.workers, c.namespaces, got, c.want)
		}
	}
}

// shares are how many workers up to three namespaces have.
type shares [3]int

func (s shares) sum() int { return s[0] + s[1] + s[2] }

// most is the highest sum that can be reached.
func most(workers int, now shares, namespaces int, seen map[shares]bool) int {
	if seen[now] {
		return 0
	}
	seen[now] = true
	highest := now.sum()
	for i := range namespaces {
		q := newQueue(workers)
		namespace := string(rune('a' + i))
		q.lines[namespace] = &line[string]{workers: now[i]}
		q.free -= now.sum()
		q.Push(namespace)
		if q.Ready() {
			next := now
			next[i]++
			highest = max(highest, most(workers, next, namespaces, seen))
		}
		if now[i] > 0 {
			next := now
			next[i]--
			highest = max(highest, most(workers, next, namespaces, seen))
		}
	}
	return highest
}

// TestTurns goes through random histories. Nothing is lost, nothing is given twice, and within a namespace all go as they came. While a
// namespace waits and may have a worker, each other one gets at most one. One that has no worker may have any that is free.
func TestTurns(t *testing.T) {
	for seed := range uint64(500) {
		h := newHistory(t, rand.New(rand.NewPCG(seed, 11)))
		for range 400 {
			h.step()
		}
		clear(h.held)
		for h.q.Len() > 0 || len(h.working) > 0 {
			h.done()
			h.take()
		}
		if h.taken != h.pushed {
			t.Errorf("seed %d: %d came, %d went", seed, h.pushed, h.taken)
		}
		if len(h.q.lines) > 0 || h.q.turns.Len() > 0 {
			t.Errorf("seed %d: %d namespaces are kept without need", seed, len(h.q.lines))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// history knows by itself who waits, who has a worker, and who was served while others waited.
type history struct {
	t          *testing.T
	q          *Queue[string]
	rand       *rand.Rand
	workers    int
	namespaces int

	waiting map[string][]string
	// held are the namespaces in which nothing new is to begin.
	held map[string]bool
	// row counts by namespace those that have begun and went while one waited that has not.
	row map[string]int
	// begunWent counts them whoever waited. editRow and editsWent are the same for what was edited, and the rest of the rest.
	begunWent, editRow, editsWent map[string]int
	has                           map[string]int
	working                       []string
	// ahead counts by who waits whom it saw go first.
	ahead         map[string]map[string]int
	pushed, taken int
}

func newHistory(t *testing.T, r *rand.Rand) *history {
	t.Helper()
	workers := 1 + r.IntN(10)
	h := &history{
		held: map[string]bool{}, t: t, q: newQueue(workers), rand: r, workers: workers, namespaces: 1 + r.IntN(12),
		waiting: map[string][]string{}, row: map[string]int{}, begunWent: map[string]int{}, editRow: map[string]int{}, editsWent: map[string]int{}, has: map[string]int{}, ahead: map[string]map[string]int{},
	}
	h.q.Hold(func(namespace string) bool { return h.held[namespace] })
	return h
}

func (h *history) step() {
	if h.rand.IntN(20) == 0 {
		namespace := string(rune('a' + h.rand.IntN(h.namespaces)))
		h.held[namespace] = !h.held[namespace]
	}
	switch h.rand.IntN(3) {
	case 0:
		namespace := string(rune('a' + h.rand.IntN(h.namespaces)))
		item := fmt.Sprintf("%s%d%s", namespace, h.pushed, []string{"", "?", "!", "*"}[h.rand.IntN(4)])
		h.q.Push(item)
		h.q.Touch(item)
		h.waiting[namespace] = append(h.waiting[namespace], item)
		h.pushed++
	case 1:
		h.take()
	case 2:
		h.done()
	}
}

// may tells whether a namespace that waits may have a worker.
func (h *history) may(namespace string) bool {
	stay := h.workers - len(h.working) - 1
	return len(h.goes(namespace)) > 0 && stay >= 0 && 2*stay >= h.has[namespace]
}

// goes are those of a namespace that wait and are not held back.
func (h *history) goes(namespace string) []string {
	quarter := h.urgent() && h.others(namespace) >= max(1, h.workers/4)
	return slices.DeleteFunc(slices.Clone(h.waiting[namespace]), func(item string) bool {
		return h.held[namespace] && stage(item) == New || quarter && stage(item) == Other
	})
}

// urgent tells whether something that has begun or was edited waits or is worked on.
func (h *history) urgent() bool {
	is := func(item string) bool { return stage(item) == Begun || stage(item) == Edited }
	for _, waiting := range h.waiting {
		if slices.ContainsFunc(waiting, is) {
			return true
		}
	}
	return slices.ContainsFunc(h.working, is)
}

// others is how many of a namespace are worked on that are neither new nor begun nor edited.
func (h *history) others(namespace string) (n int) {
	for _, item := range h.working {
		if item[:1] == namespace && stage(item) == Other {
			n++
		}
	}
	return n
}

func (h *history) take() {
	entitled := map[string]bool{}
	for namespace := range h.waiting {
		if h.may(namespace) {
			entitled[namespace] = true
		} else if len(h.goes(namespace)) > 0 && h.has[namespace] == 0 && len(h.working) < h.workers {
			h.t.Errorf("%s has no worker, one is free, and it gets none", namespace)
		}
	}
	if h.q.Ready() != (len(entitled) > 0) {
		h.t.Errorf("ready: %t; may have a worker: %v", h.q.Ready(), entitled)
	}
	forced := h.rand.IntN(50) == 0 && h.q.Len() > 0 && len(h.working) < h.workers
	if !h.q.Ready() && !forced {
		return
	}
	item := h.q.Pop()
	namespace := item[:1]
	h.inLine(namespace, item)
	if len(entitled) > 0 && !entitled[namespace] {
		h.t.Errorf("%s has %d of %d workers, and gets one more before %v", namespace, h.has[namespace], h.workers, entitled)
	}
	h.waiting[namespace] = slices.DeleteFunc(h.waiting[namespace], func(other string) bool { return other == item })
	h.has[namespace]++
	h.working = append(h.working, item)
	h.taken++
	delete(h.ahead, namespace)
	for other := range entitled {
		if other == namespace {
			continue
		}
		if h.ahead[other] == nil {
			h.ahead[other] = map[string]int{}
		}
		if h.ahead[other][namespace]++; h.ahead[other][namespace] > 1 {
			h.t.Errorf("%s waits, and %s has a second turn", other, namespace)
		}
	}
}

// inLine wants an item to be the first of its namespace that has begun, that was edited, or that is neither, and is not held back: of these the
// latter at the latest after three of the former.
func (h *history) inLine(namespace, item string) {
	line := h.goes(namespace)
	if len(line) == 0 { // all have to wait, and one goes nevertheless
		line = slices.DeleteFunc(slices.Clone(h.waiting[namespace]), func(other string) bool { return stage(other) != Other })
	}
	if len(line) == 0 {
		line = h.waiting[namespace]
	}
	edited := func(other string) bool { return stage(other) == Edited }
	same := func(other string) bool { return begun(other) == begun(item) && edited(other) == edited(item) }
	if i := slices.IndexFunc(line, same); i < 0 || line[i] != item {
		h.t.Fatalf("%s, of %v", item, line)
	}
	h.fourth(item, namespace, line, begun, h.row, h.begunWent)
	if !begun(item) {
		h.fourth(item, namespace, slices.DeleteFunc(slices.Clone(line), begun), edited, h.editRow, h.editsWent)
	}
}

// fourth wants those that go first to do so, and each fourth time one of the others.
func (h *history) fourth(item, namespace string, line []string, first func(string) bool, row, went map[string]int) {
	others := slices.ContainsFunc(line, func(other string) bool { return first(other) != first(item) })
	switch {
	case first(item) && others:
		if row[namespace]++; row[namespace] > inARow {
			h.t.Errorf("%s is the %dth in a row that goes first, of %v", item, row[namespace], h.waiting[namespace])
		}
	case !first(item):
		if others && went[namespace] < inARow {
			h.t.Errorf("%s goes before those that go first, after %d of them, of %v", item, went[namespace], h.waiting[namespace])
		}
		row[namespace] = 0
	}
	if first(item) {
		went[namespace]++
	} else {
		went[namespace] = 0
	}
}

func (h *history) done() {
	if len(h.working) == 0 {
		return
	}
	i := h.rand.IntN(len(h.working))
	item := h.working[i]
	h.working = append(h.working[:i], h.working[i+1:]...)
	h.has[item[:1]]--
	h.q.Done(item)
}

// BenchmarkQueue: one more item costs the same, whatever waits.
func BenchmarkQueue(b *testing.B) {
	for _, namespaces := range []int{1, 100, 10000} {
		b.Run(fmt.Sprint(namespaces), func(b *testing.B) {
			q := NewQueue(8, func(item int) string { return fmt.Sprint(item % namespaces) }, func(item int) Stage { return Stage(item % 4) })
			for i := range 10000 {
				q.Push(i)
			}
			for b.Loop() {
				item := q.Pop()
				q.Done(item)
				q.Push(item)
			}
		})
	}
}
