// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// attempt is how long one try of an action may take: an API server that was stopped never answers.
	attempt = 15 * time.Second
	// again is after what time an action that failed is tried again.
	again = 500 * time.Millisecond
)

// lanes carry out actions. Those of one lane follow each other, and nobody waits for another lane: much takes long while
// something is broken.
type lanes struct {
	ctx context.Context //nolint:containedctx // of the goroutines that work, which end with it
	// close has nothing more be done.
	close func()

	mu     sync.Mutex
	queues map[string][]task
	// problems are why the first task of a lane has not succeeded yet.
	problems map[string]error
}

// task is one action to be carried out.
type task struct {
	what string
	do   func(ctx context.Context) error
}

func newLanes(ctx context.Context) *lanes {
	ctx, cancel := context.WithCancel(ctx)
	return &lanes{ctx: ctx, close: cancel, queues: map[string][]task{}, problems: map[string]error{}}
}

// add has a task done after those that are in the lane already. It is tried until it succeeds.
func (l *lanes) add(lane string, t task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[lane] = append(l.queues[lane], t)
	if len(l.queues[lane]) == 1 {
		go l.work(lane)
	}
}

func (l *lanes) work(lane string) {
	for {
		l.mu.Lock()
		t := l.queues[lane][0]
		l.mu.Unlock()
		if !l.try(lane, t) {
			return
		}
		l.mu.Lock()
		delete(l.problems, lane)
		l.queues[lane] = l.queues[lane][1:]
		done := len(l.queues[lane]) == 0
		l.mu.Unlock()
		if done {
			return
		}
	}
}

func (l *lanes) try(lane string, t task) (done bool) {
	for {
		ctx, cancel := context.WithTimeout(l.ctx, attempt)
		err := t.do(ctx)
		cancel()
		if err == nil {
			return true
		}
		l.mu.Lock()
		l.problems[lane] = err
		l.mu.Unlock()
		select {
		case <-l.ctx.Done():
			return false
		case <-time.After(again):
		}
	}
}

// pending tells what is not done yet, and why.
func (l *lanes) pending() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for lane, queue := range l.queues {
		if len(queue) > 0 {
			all = append(all, fmt.Sprintf("%d actions wait in %s: %s (%v)", len(queue), lane, queue[0].what, l.problems[lane]))
		}
	}
	slices.Sort(all)
	return all
}
