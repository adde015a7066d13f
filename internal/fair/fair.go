// Package fair puts what waits for workers into an order in which no namespace holds up another.
package fair

import "container/list"

// Queue lets namespaces take turns at a number of workers. A namespace that has n workers gets another one only if n/2 stay free then. Of 8
// workers one namespace gets at most 5, and two at most 7, however much they wait for and however long it takes: whoever comes next finds a
// free one. The price is that these stay idle while nobody else comes.
//
// Within a namespace, what has begun goes before what has not, so that the first is through early although hundreds wait; and each fourth
// time what has not, so that it waits at most four times as long as without the others. Among each of the two, who comes first goes first.
// What has not begun can be held back altogether.
//
// Each call takes a bounded time, whatever waits: at most as many namespaces as there are workers are passed over, and those that are held
// back. What is kept of a namespace goes when nothing of it waits or is worked on. It is not safe for concurrent use.
type Queue[T any] struct {
	of      func(T) string
	begun   func(T) bool
	free    int
	waiting int
	// held is true while nothing is to begin.
	held  bool
	lines map[string]*line[T]
	// turns are the lines in which somebody waits; the first is next, unless it has too many workers: then it keeps its place.
	turns *list.List
}

// inARow is how many that have begun go one after another while some wait that have not.
const inARow = 3

// line is what is known of one namespace.
type line[T any] struct {
	begun, fresh []T
	// row is how many that have begun went since the last that had not, at most inARow.
	row     int
	workers int
}

func (l *line[T]) waiting() int { return len(l.begun) + len(l.fresh) }

// pop takes what has not begun, though it is held, when there is nothing else.
func (l *line[T]) pop(held bool) T {
	from := &l.begun
	if l.row++; len(l.begun) == 0 || l.row > inARow && len(l.fresh) > 0 && !held {
		from, l.row = &l.fresh, 0
	}
	l.row = min(l.row, inARow)
	item := (*from)[0]
	clear((*from)[:1]) // the array lives on
	*from = (*from)[1:]
	if len(*from) == 0 {
		*from = nil
	}
	return item
}

// New makes a queue for that many workers, 1 or more, whose items are of the namespaces that of tells. What has begun is asked when an item
// comes.
func New[T any](workers int, of func(T) string, begun func(T) bool) *Queue[T] {
	return &Queue[T]{of: of, begun: begun, free: workers, lines: map[string]*line[T]{}, turns: list.New()}
}

// Touch leaves an item that waits where it is.
func (q *Queue[T]) Touch(T) {}

// Push lets an item wait.
func (q *Queue[T]) Push(item T) {
	l := q.lines[q.of(item)]
	if l == nil {
		l = &line[T]{}
		q.lines[q.of(item)] = l
	}
	if l.waiting() == 0 {
		q.turns.PushBack(l)
	}
	if q.begun(item) {
		l.begun = append(l.begun, item)
	} else {
		l.fresh = append(l.fresh, item)
	}
	q.waiting++
}

// Len tells how many items wait.
func (q *Queue[T]) Len() int { return q.waiting }

// Hold keeps what has not begun waiting, or does so no longer.
func (q *Queue[T]) Hold(held bool) { q.held = held }

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
	item := l.pop(q.held)
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
	l := q.lines[q.of(item)]
	if l == nil || l.workers == 0 {
		return // nobody works on it
	}
	l.workers--
	q.free++
	if l.workers == 0 && l.waiting() == 0 {
		delete(q.lines, q.of(item))
	}
}

// next is the first turn of a line that may have another worker. Only those are passed over that have one already, or are held back.
func (q *Queue[T]) next() *list.Element {
	if q.free < 1 {
		return nil
	}
	for turn := q.turns.Front(); turn != nil; turn = turn.Next() {
		l := turn.Value.(*line[T])
		if l.workers <= 2*(q.free-1) && (len(l.begun) > 0 || !q.held) {
			return turn
		}
	}
	return nil
}
