package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// patience is how long anything may take.
	patience = 5 * time.Minute
	// interval is short, since somebody measures what happens next, and no measured time depends on it.
	interval = 100 * time.Millisecond
	// spare is how many times as long as an answer takes nothing is asked: asking must not be what takes the time.
	spare = 20
)

// poll asks until there is no error.
func poll(ctx context.Context, what string, ask func() error) error {
	return pollFor(ctx, patience, what, ask)
}

func pollFor(ctx context.Context, patience time.Duration, what string, ask func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	for {
		began := time.Now()
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(max(interval, spare*time.Since(began))):
		}
	}
}
