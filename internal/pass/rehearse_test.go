package pass

import "testing"

// TestWhatIsKnownOfADecision: tools ask a decision that ended early, too.
func TestWhatIsKnownOfADecision(t *testing.T) {
	d := moving(t)
	if got := d.Revision(); got == "" || got != d.work.plan.Revision {
		t.Errorf("its revision is %q", got)
	}
	d.work.plan = nil
	if got := d.Revision(); got != "" {
		t.Errorf("without a plan its revision is %q", got)
	}
	if d.Beginning() != nil {
		t.Error("a move that nobody asks for begins")
	}
	d.begins = &beginning{next: d.thoughtOf()}
	if got := d.Beginning(); got == nil || got.To != "two" {
		t.Errorf("the beginning is %+v", got)
	}
	d.begins.err = errEnough
	if d.Beginning() != nil {
		t.Error("a move that could not be looked at begins")
	}
}
