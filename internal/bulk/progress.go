package bulk

import "time"

// Counts are how many FleetWorkloads count as what.
type Counts struct {
	Chosen       int `json:"chosen"`
	Moved        int `json:"moved"`
	AlreadyThere int `json:"alreadyThere"`
	UnderWay     int `json:"underWay"`
	Waiting      int `json:"waitForPerson"`
	// Failed are also those that are on their way back.
	Failed  int `json:"failed"`
	ToGo    int `json:"toGo"`
	Skipped int `json:"skipped"`
	Deleted int `json:"deleted"`
	// Clusters is on how many clusters they run, each counted by itself, and HandedOver of how many the backend has them.
	Clusters   int `json:"clusters"`
	HandedOver int `json:"clustersHandedOver"`

	failing int
}

// Busy is how many are counted among those that are moved at once.
func (c Counts) Busy() int { return c.UnderWay + c.failing }

// There is how many are on the backend.
func (c Counts) There() int { return c.Moved + c.AlreadyThere }

// Left is how many are not on the backend, and not deleted either.
func (c Counts) Left() int { return c.Chosen - c.There() - c.Deleted }

func (c *Counts) of(s State, n int) {
	c.Chosen += n
	switch s {
	case ToGo:
		c.ToGo += n
	case UnderWay:
		c.UnderWay += n
	case Waiting:
		c.Waiting += n
	case Failing:
		c.failing += n
		c.Failed += n
	case Failed:
		c.Failed += n
	case Moved:
		c.Moved += n
	case AlreadyThere:
		c.AlreadyThere += n
	case Skipped:
		c.Skipped += n
	case Deleted:
		c.Deleted += n
	}
}

// Counts are the present ones.
func (m *Migration) Counts() Counts { return m.counts }

// Left is about how long it takes until nothing is under way and nothing to go, from how long those took that have arrived; 0 while none has,
// and when nothing is left. Whoever waits for a person is left out.
func (m *Migration) Left(now time.Time) time.Duration {
	busy := m.counts.Busy()
	toGo := m.counts.ToGo
	if m.stopped {
		toGo = 0
	}
	if m.timed == 0 || busy+toGo == 0 {
		return 0
	}
	each := m.took / time.Duration(m.timed)
	work, longest := each*time.Duration(toGo), time.Second
	for e := range m.notable {
		if e.State == UnderWay || e.State == Failing {
			left := max(0, each-now.Sub(e.Begun))
			work, longest = work+left, max(longest, left)
		}
	}
	return max(longest, work/time.Duration(min(m.rules.AtOnce, busy+toGo)))
}
