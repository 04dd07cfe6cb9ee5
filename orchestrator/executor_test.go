package orchestrator

import (
	"slices"
	"testing"
)

// Activities that other processes run do not take part in a step. One that is recalled does, once and in order, also
// when no step came between.
func TestSentActivitiesLeaveTheSteps(t *testing.T) {
	t.Parallel()
	c := newExecutor(t.Context(), newCostRig(t).runtime, Start{ID: "a"})
	defer c.close()
	x := &execution{number: 1}
	c.attach(x)
	for range 4 {
		x.add(task{kind: activityTask, name: "step", foreign: true}) // so that none is begun
	}
	steps := func(want ...int) {
		t.Helper()
		c.dispatch()
		var got []int
		for _, w := range c.waiting {
			got = append(got, w.number)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("calls %v take part in a step, not %v", got, want)
		}
	}
	send := func(calls ...int) {
		t.Helper()
		noError(t, x.markSent(event{Kind: activitiesSent, Target: &target{Tasks: calls}}))
	}
	steps(1, 2, 3, 4)
	send(1, 2, 3)
	steps(4)
	x.recall(x.task(2))
	steps(2, 4)
	x.recall(x.task(1))
	send(4)
	x.recall(x.task(4))
	steps(1, 2, 4)
	x.recall(x.task(3))
	c.attach(x) // after which all are checked again
	steps(1, 2, 3, 4)
}
