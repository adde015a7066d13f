package tokens

import "time"

const (
	// interval is how often tokens are looked at, and the first pause after a failure.
	interval = time.Minute
	// longest is the longest pause.
	longest = 15 * time.Minute
)

// turn is what is remembered of the token of one backend, to decide when another one is asked for.
type turn struct {
	text string
	// begun is when its life began: by our own clock once a token was asked for here, else what the token says, by the backend's clock.
	begun time.Time
	// ahead is by how much our own clock was ahead of the backend's when a token was last asked for here.
	ahead time.Duration
	// failure is why the last try failed, pause how long the next one waits, and next when it is.
	failure error
	pause   time.Duration
	next    time.Time
}

// see forgets all of the token before, but how our clock differs from the backend's: another operator may have renewed it.
func (t *turn) see(token Token) {
	if t.text != token.Text {
		*t = turn{text: token.Text, begun: token.Issued.Add(t.ahead), ahead: t.ahead}
	}
}

// due says whether it is time to ask for another token. An API server may have given a shorter life than was asked for, so a fifth of what it gave
// is enough, however long after is.
func (t *turn) due(now time.Time, life, after time.Duration) bool {
	return !now.Before(t.begun.Add(min(after, RenewAfter(life)))) && !now.Before(t.next)
}

// failed waits longer each time, but not past what is left of the token.
func (t *turn) failed(now time.Time, life time.Duration, err error) {
	pause := min(2*t.pause, longest)
	if left := t.begun.Add(life).Sub(now); left > 0 {
		pause = min(pause, left/2)
	}
	t.failure, t.pause = err, max(pause, interval)
	t.next = now.Add(t.pause)
}

// renewed goes by our own clock from here on: a clock that differs from the backend's must neither renew in each turn nor too late.
func (t *turn) renewed(now time.Time, token Token) {
	*t = turn{text: token.Text, begun: now, ahead: now.Sub(token.Issued)}
}
