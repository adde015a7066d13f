package main

import "testing"

// TestTheListIsFresh: who changes a line in which a fault is planted changes it in the list too.
func TestTheListIsFresh(t *testing.T) {
	t.Chdir("../..")
	faults, err := options{list: "hack/mutants/faults.yaml"}.read()
	if err != nil {
		t.Fatal(err)
	}
	if err := (tree{dir: "."}).fresh(faults); err != nil {
		t.Error(err)
	}
}
