// Package fair puts what waits for workers into an order in which no namespace holds up another.
package fair

import (
	"cmp"
	"container/list"
	"slices"
)

// Queue lets namespaces take turns at a number of workers. A namespace that has n workers gets another one only if n/2 stay free then. Of 8
// workers one namespace gets at most 5, and two at most 7, however much they wait for and however long it takes: whoever comes next finds a
// free one. The price is that these stay idle while nobody else comes.
//
// Within a namespace, what has begun goes before the rest, so that the first is through early although hundreds wait; and each fourth time the
// rest, so that it waits at most four times as long as without the others. In the same way what was edited goes before the rest of the rest: somebody
// waits for it. Among each of the three, who comes first goes first. What is new can be held back, namespace by namespace.
//
// While anything that has begun or was edited waits or is worked on, in whatever namespace, each namespace has at most a quarter of the workers for
// what is Other. A thousand passes that only write news would otherwise take the API servers' time from what somebody waits for.
//
// Each call takes a bounded time, whatever waits: at most as many namespaces as there are workers are passed over, and those that are held
// back. What is kept of a namespace goes when nothing of it waits or is worked on. It is not safe for concurrent use.
type Queue[T comparable] struct {
	of      func(T) string
	stage   func(T) Stage
	free    int
	waiting int
	// mostOthers is how many Other of a namespace are worked on at once while urgent is above 0.
	mostOthers int
	// urgent is how many that have begun or were edited wait or are worked on, and given is the stage of each item that is worked on.
	urgent int
	given  map[T]Stage
	// came counts all that have come.
	came int
	// held tells in which namespaces nothing new is to begin; nil is none.
	held  func(namespace string) bool
	lines map[string]*line[T]
	// turns are the lines in which somebody waits; the first is next, unless it has too many workers: then it keeps its place.
	turns *list.List
}

// Stage is how far an item is.
type Stage int

const (
	// Other is none of the three.
	Other Stage = iota
	// New is what begins with its turn.
	New
	// Edited is what somebody has edited, and has not begun.
	Edited
	// Begun is what is on its way.
	Begun
)

// inARow is how many that have begun go one after another while some wait that have not, and how many that were edited while others wait.
const inARow = 3

// line is what is known of one namespace.
type line[T comparable] struct {
	namespace string
	// waits are those that wait, by their stage.
	waits [Begun + 1][]place[T]
	// row is how many that have begun went since the last that had not, and edits how many that were edited since the last of the rest; at most inARow.
	row, edits int
	// workers is how many it has, of which others work on what is Other.
	workers, others int
}

// place is an item that waits, and its number among all that have come.
type place[T comparable] struct {
	item T
	came int
}

func (l *line[T]) waiting() (n int) {
	for _, waits := range l.waits {
		n += len(waits)
	}
	return n
}

// closed tells which stages have to wait, though a worker is free.
type closed struct{ others, news bool }

// rest is the stage whose first is next of those that neither have begun nor were edited; open is false when all of them have to wait.
func (l *line[T]) rest(c closed) (stage Stage, open bool) {
	others, news := l.waits[Other], l.waits[New]
	mayOther, mayNew := len(others) > 0 && !c.others, len(news) > 0 && !c.news
	switch {
	case mayOther && (!mayNew || others[0].came < news[0].came):
		return Other, true
	case mayNew:
		return New, true
	case len(others) > 0:
		return Other, false
	default:
		return New, false
	}
}

// next is the stage whose first is next: one that has to wait, with open false, when there is nothing else.
func (l *line[T]) next(c closed) (stage Stage, open bool) {
	stage, open = l.rest(c)
	if len(l.waits[Edited]) > 0 && (l.edits < inARow || !open) {
		stage, open = Edited, true
	}
	if len(l.waits[Begun]) > 0 && (l.row < inARow || !open) {
		stage, open = Begun, true
	}
	return stage, open
}

func (l *line[T]) pop(c closed) (item T, stage Stage) {
	stage, _ = l.next(c)
	switch stage {
	case Begun:
		l.row = min(l.row+1, inARow)
	case Edited:
		l.row, l.edits = 0, min(l.edits+1, inARow)
	case Other, New:
		l.row, l.edits = 0, 0
	}
	from := &l.waits[stage]
	item = (*from)[0].item
	clear((*from)[:1]) // the array lives on
	*from = (*from)[1:]
	if len(*from) == 0 {
		*from = nil
	}
	return item, stage
}

// NewQueue makes a queue for that many workers, 1 or more, whose items are of the namespaces that of tells. Their stage is asked when they come,
// and when they are touched.
func NewQueue[T comparable](workers int, of func(T) string, stage func(T) Stage) *Queue[T] {
	return &Queue[T]{
		of: of, stage: stage, free: workers, mostOthers: max(1, workers/4), given: map[T]Stage{}, lines: map[string]*line[T]{}, turns: list.New(),
	}
}

// Touch leaves an item that waits where it is, unless it is edited meanwhile, or was new and is no longer, such as one that is deleted before it has
// begun: that goes by when it came among those that are not held back.
func (q *Queue[T]) Touch(item T) {
	l := q.lines[q.of(item)]
	if l == nil {
		return
	}
	switch stage := q.stage(item); stage {
	case Edited:
		if l.move(item, Other, stage) || l.move(item, New, stage) {
			q.urgent++
		}
	case Other:
		l.move(item, New, stage)
	case New, Begun:
	}
}

// move lets an item wait elsewhere, by when it came, if it waits there.
func (l *line[T]) move(item T, from, to Stage) (moves bool) {
	i := slices.IndexFunc(l.waits[from], func(p place[T]) bool { return p.item == item })
	if i < 0 {
		return false
	}
	moved := l.waits[from][i]
	at, _ := slices.BinarySearchFunc(l.waits[to], moved.came, func(p place[T], came int) int { return cmp.Compare(p.came, came) })
	l.waits[to] = slices.Insert(l.waits[to], at, moved)
	l.waits[from] = slices.Delete(l.waits[from], i, i+1)
	return true
}

// Push lets an item wait.
func (q *Queue[T]) Push(item T) {
	l := q.lines[q.of(item)]
	if l == nil {
		l = &line[T]{namespace: q.of(item)}
		q.lines[l.namespace] = l
	}
	if l.waiting() == 0 {
		q.turns.PushBack(l)
	}
	stage := q.stage(item)
	l.waits[stage] = append(l.waits[stage], place[T]{item, q.came})
	if stage >= Edited {
		q.urgent++
	}
	q.came++
	q.waiting++
}

// Len tells how many items wait.
func (q *Queue[T]) Len() int { return q.waiting }

// Hold keeps what is new waiting in the namespaces that held tells, until the next Hold. Nil holds back nothing.
func (q *Queue[T]) Hold(held func(namespace string) bool) { q.held = held }

// closedFor tells which stages of a namespace have to wait.
func (q *Queue[T]) closedFor(l *line[T]) closed {
	return closed{others: q.urgent > 0 && l.others >= q.mostOthers, news: q.held != nil && q.held(l.namespace)}
}

// Ready tells whether one of those that wait may have a worker now.
func (q *Queue[T]) Ready() bool { return q.next() != nil }

// Pop gives the next item to a worker, which has to say when it is Done. Something has to wait. When nothing is Ready, the first in turn
// gets the worker nevertheless.
func (q *Queue[T]) Pop() T {
	turn := q.next()
	if turn == nil {
		turn = q.turns.Front()
	}
	l := turn.Value.(*line[T])
	item, stage := l.pop(q.closedFor(l))
	q.given[item] = stage
	if stage == Other {
		l.others++
	}
	if l.waiting() == 0 {
		q.turns.Remove(turn)
	} else {
		q.turns.MoveToBack(turn)
	}
	l.workers++
	q.free--
	q.waiting--
	return item
}

// Done frees the worker that an item was given to.
func (q *Queue[T]) Done(item T) {
	stage, known := q.given[item]
	if !known {
		return // nobody works on it
	}
	delete(q.given, item)
	l := q.lines[q.of(item)]
	l.workers--
	q.free++
	if stage == Other {
		l.others--
	}
	if stage >= Edited {
		q.urgent--
	}
	if l.workers == 0 && l.waiting() == 0 {
		delete(q.lines, q.of(item))
	}
}

// next is the first turn of a line that may have another worker. Only those are passed over that have one already, or whose new ones are held back.
func (q *Queue[T]) next() *list.Element {
	if q.free < 1 {
		return nil
	}
	for turn := q.turns.Front(); turn != nil; turn = turn.Next() {
		l := turn.Value.(*line[T])
		if _, open := l.next(q.closedFor(l)); open && l.workers <= 2*(q.free-1) {
			return turn
		}
	}
	return nil
}
