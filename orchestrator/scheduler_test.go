package orchestrator

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/sample"
)

// move is one turn of a coroutine: it completes tasks and begins others, and then waits for any of some tasks, or
// until so many moves were made.
type move struct {
	Done, Wait []int
	Begin      int // coroutines
	Moves      int // 0: it waits for tasks
}

// plays draws the moves of many coroutines, with tasks that any of them can complete.
func plays(t *rapid.T, tasks int) [][]move {
	some := rapid.SliceOfN(rapid.IntRange(0, tasks-1), 0, 3)
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
		m := move{Done: some.Draw(t, "done"), Wait: some.Draw(t, "wait"), Begin: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "begin")}
		if len(m.Wait) == 0 {
			m.Moves = rapid.IntRange(1, 30).Draw(t, "moves")
		}
		return m
	}), 1, 4), 1, 8).Draw(t, "plays")
}

// Coroutines take turns as if each were checked in the order in which they were made, over and over, until none can
// continue.
func TestTurnsAreInOrder(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(t *rapid.T) {
		const tasks = 12
		all := plays(t, tasks)
		outside := rapid.SliceOfN(rapid.IntRange(0, tasks-1), 0, 10).Draw(t, "outside")
		if diff := cmp.Diff(inPasses(all, tasks, outside), inTurns(all, tasks, outside)); diff != "" {
			t.Fatalf("(-by passes +by turns):\n%s", diff)
		}
	})
}

// inTurns runs them in an execution.
func inTurns(all [][]move, count int, outside []int) (log []string) {
	x := &execution{}
	defer x.close()
	tasks := make([]*task, count)
	for i := range tasks {
		tasks[i] = &task{kind: conditionTask}
	}
	done := func(i int) {
		if !tasks[i].done {
			x.complete(tasks[i], nil, nil)
		}
	}
	begun, moves := 0, 0
	var begin func()
	begin = func() {
		if begun == len(all) {
			return
		}
		me := begun
		begun++
		x.spawn(&task{kind: coroutineTask}, func() (json.RawMessage, error) {
			for i, m := range all[me] {
				log = append(log, fmt.Sprint(me, ".", i))
				moves++
				for _, i := range m.Done {
					done(i)
				}
				for range m.Begin {
					begin()
				}
				if m.Moves > 0 {
					if holds := func() bool { return moves >= m.Moves }; !holds() {
						x.waitUntilTrue(x.current, []*task{{kind: conditionTask}}, holds)
					}
					continue
				}
				var waits []*task
				for _, i := range m.Wait {
					waits = append(waits, tasks[i])
				}
				x.waitAny(waits)
			}
			return nil, nil
		}, func(*task) {})
	}
	begin()
	x.turn()
	for _, i := range outside {
		log = append(log, fmt.Sprint("outside ", i))
		done(i)
		begin()
		x.turn()
	}
	return log
}

// inPasses applies the rule directly.
func inPasses(all [][]move, count int, outside []int) (log []string) {
	done, at, waits := make([]bool, count), []int{}, []func() bool{}
	moves := 0
	begin := func() {
		if len(at) < len(all) {
			at, waits = append(at, 0), append(waits, func() bool { return true })
		}
	}
	run := func(me int) {
		for at[me] < len(all[me]) && waits[me]() {
			m := all[me][at[me]]
			log = append(log, fmt.Sprint(me, ".", at[me]))
			at[me]++
			moves++
			for _, i := range m.Done {
				done[i] = true
			}
			for range m.Begin {
				begin()
			}
			waits[me] = func() bool {
				return m.Moves > 0 && moves >= m.Moves || slices.ContainsFunc(m.Wait, func(i int) bool { return done[i] })
			}
		}
	}
	turn := func() {
		for progress := true; progress; {
			progress = false
			for me := 0; me < len(at); me++ {
				if at[me] < len(all[me]) && waits[me]() {
					progress = true
					run(me)
				}
			}
		}
	}
	begin()
	turn()
	for _, i := range outside {
		log = append(log, fmt.Sprint("outside ", i))
		done[i] = true
		begin()
		turn()
	}
	return log
}
