package main

import (
	"strings"
	"testing"
)

// TestModel checks that the model gives the same result each time, and that obvious relations hold.
func TestModel(t *testing.T) {
	small := base
	small.desks, small.commits = 20, 200
	a := small.run(1)
	if b := small.run(1); a != b {
		t.Errorf("%+v, then %+v", a, b)
	}
	if a.hits <= 0.9 || a.hits > 1 || a.jobs < small.commits || a.busy <= 0 || a.busy >= 1 {
		t.Errorf("%+v", a)
	}
	few := small
	few.runners, few.slots = 1, 1
	if b := few.run(1); b.wait <= a.wait || b.hits >= a.hits || b.busy <= a.busy {
		t.Errorf("fewer runners are not worse: %+v, %+v", a, b)
	}
	var out strings.Builder
	if err := table(&out, []string{"x"}, []studio{small}); err != nil || strings.Count(out.String(), "\n") != 16 {
		t.Errorf("%v\n%s", err, out.String())
	}
}
