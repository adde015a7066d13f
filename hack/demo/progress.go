package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// quiet is how long a step may say nothing before it is said that it still runs.
const quiet = 10 * time.Second

// progress numbers steps, and shows that they live.
type progress struct {
	out   io.Writer
	count int
}

func newProgress(out io.Writer) *progress { return &progress{out: out} }

// step runs one step under a title. What it writes is indented.
func (p *progress) step(ctx context.Context, title string, run func(context.Context, io.Writer) error) error {
	p.count++
	fmt.Fprintf(p.out, "\n%d. %s\n", p.count, title)
	w := &stepWriter{out: p.out, last: time.Now(), atStart: true}
	began := time.Now()
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() { w.tick(done, began) })
	err := run(ctx, w)
	close(done)
	ticking.Wait()
	return err
}

// stepWriter indents lines and knows when it was written to last.
type stepWriter struct {
	mu      sync.Mutex
	out     io.Writer
	last    time.Time
	atStart bool
	// drawnOn is true while something redraws a part of the screen: a line in between would move it.
	drawnOn bool
}

const indent = "   "

// Write indents each line.
func (w *stepWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	indented := make([]byte, 0, len(text)+8*len(indent))
	for _, b := range text {
		if w.atStart && b != '\n' {
			indented = append(indented, indent...)
		}
		w.atStart = b == '\n'
		indented = append(indented, b)
	}
	if _, err := w.out.Write(indented); err != nil {
		return 0, err
	}
	return len(text), nil
}

// tick says that the step still runs whenever it was quiet for long.
func (w *stepWriter) tick(done <-chan struct{}, began time.Time) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-ticker.C:
			w.mu.Lock()
			silent := !w.drawnOn && w.atStart && now.Sub(w.last) >= quiet
			w.mu.Unlock()
			if silent {
				fmt.Fprintf(w, "still at it, %s\n", now.Sub(began).Round(time.Second))
			}
		}
	}
}

// screen is where a table can be redrawn in place for the rest of a step; nil when the output is not a terminal.
func screen(out io.Writer) io.Writer {
	w, ok := out.(*stepWriter)
	if !ok || !isTerminal(w.out) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drawnOn = true
	return w.out
}
