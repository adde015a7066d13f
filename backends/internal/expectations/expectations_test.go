package expectations

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func object(version string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "web", ResourceVersion: version}}
	obj.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("ManifestWork"))
	return obj
}

func TestBehind(t *testing.T) {
	for name, test := range map[string]struct {
		written, live string
		later         time.Duration
		now           string
		reached       string
		// asks tells whether the API server is asked.
		behind, asks bool
	}{
		"nothing was written":            {live: "5"},
		"nothing was written or is":      {},
		"not there yet":                  {written: "9", behind: true},
		"as before":                      {written: "10", live: "9", behind: true},
		"as written":                     {written: "10", live: "10"},
		"written by others since":        {written: "9", live: "10"},
		"late":                           {written: "10", live: "9", later: Patience, now: "10", behind: true, asks: true},
		"late, and not there":            {written: "10", later: Patience, now: "10", behind: true, asks: true},
		"restored from a backup":         {written: "10", live: "7", later: Patience, now: "7", asks: true},
		"restored, and not there yet":    {written: "10", later: Patience, now: "7", behind: true, asks: true},
		"nearly late":                    {written: "10", live: "9", later: Patience - 1, behind: true},
		"gone before anybody saw it":     {written: "10", later: Patience, asks: true},
		"late, as the watch is":          {written: "10", live: "9", later: Patience, reached: "9", now: "10", behind: true},
		"late, and the watch is not":     {written: "10", live: "9", later: Patience, reached: "10", now: "10", behind: true, asks: true},
		"late for long, as the watch is": {written: "10", live: "9", later: lagging, reached: "9", now: "10", behind: true, asks: true},
		"gone, and the watch knows":      {written: "10", later: Patience, reached: "11", asks: true},
		"of an API server without etcd":  {written: "b", live: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			e := Expectations{Clock: clock}
			e.Watch(func() string { return test.reached })
			if test.written != "" {
				e.Wrote(object(test.written))
			}
			clock.SetTime(clock.Now().Add(test.later))
			var live metav1.Object
			if test.live != "" {
				live = object(test.live)
			}
			asked := 0
			look := func() bool {
				behind, err := e.Behind(KeyOf(object("")), live, func() (string, error) { asked++; return test.now, nil })
				if err != nil {
					t.Fatal(err)
				}
				return behind
			}
			if look() != test.behind || (asked == 1) != test.asks {
				t.Errorf("behind %t, asked %d times", !test.behind, asked)
			}
			if look() != test.behind || asked > 1 {
				t.Errorf("the second time: behind %t, asked %d times", !test.behind, asked)
			}
		})
	}
}

func TestWhatCannotBeAskedIsAwaited(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	e := Expectations{Clock: clock}
	e.Wrote(object("10"))
	clock.SetTime(clock.Now().Add(Patience))
	down := errors.New("down")
	if behind, err := e.Behind(KeyOf(object("")), nil, func() (string, error) { return "", down }); !behind || !errors.Is(err, down) {
		t.Error(behind, err)
	}
}

func TestForget(t *testing.T) {
	var e Expectations
	e.Wrote(object("10"))
	e.Forget(KeyOf(object("")))
	if behind, _ := e.Behind(KeyOf(object("")), nil, nil); behind {
		t.Error("what is deleted is awaited")
	}
}

// TestALateWatch: an object is asked for once its watch has been there, or brings versions that have begun anew; not while it is only late.
func TestALateWatch(t *testing.T) {
	const step = 15 * time.Second
	for name, test := range map[string]struct {
		// reached is what the watch has brought after each step.
		reached []string
		// asks is the step in which the API server is asked, counted from one; 0 for none.
		asks int
		// last is the last step in which it is asked.
		last int
	}{
		"it comes":                   {reached: []string{"91", "92", "93", "94", "95", "96", "97", "98", "99"}},
		"it comes, and stops":        {reached: []string{"91", "92", "92", "92", "92", "92"}},
		"it is listed again":         {reached: []string{"40", "40", "40", "40", "40", "100"}, asks: 6},
		"it brings nothing":          {reached: slices.Repeat([]string{"40"}, 40), asks: 40},
		"it begins anew":             {reached: []string{"91", "50", "51", "52"}, asks: 2, last: 4},
		"it has come, without it":    {reached: []string{"91", "100"}, asks: 2},
		"it is never where it was":   {reached: endless(41), asks: 40},
		"it brings nothing, of none": {reached: []string{"", "", "", ""}, asks: 1},
	} {
		clock, reached, asked := clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), "40", 0
		last := 0
		e := Expectations{Clock: clock}
		e.Watch(func() string { return reached })
		e.Wrote(object("100"))
		for i, now := range test.reached {
			clock.SetTime(clock.Now().Add(step))
			reached = now
			behind, err := e.Behind(KeyOf(object("")), object("80"), func() (string, error) {
				last = i + 1
				if asked == 0 {
					asked = last
				}
				return "100", nil
			})
			if !behind || err != nil {
				t.Errorf("%s: step %d: behind %t, %v", name, i+1, behind, err)
			}
		}
		if asked != test.asks {
			t.Errorf("%s: it is asked in step %d, want %d", name, asked, test.asks)
		}
		if last != test.last && test.last > 0 {
			t.Errorf("%s: it is asked for the last time in step %d, want %d", name, last, test.last)
		}
	}
}

// endless are versions that grow and stay below 100.
func endless(n int) (versions []string) {
	for i := range n {
		versions = append(versions, strconv.Itoa(50+i))
	}
	return versions
}
