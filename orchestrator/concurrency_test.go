package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestOneDriverInAProcess(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	running, release := make(chan struct{}), make(chan struct{})
	step := NewActivity("step", func(_ context.Context, n int) (int, error) {
		l.add("step")
		close(running)
		<-release
		return n, nil
	})
	rt := w.process(t, nil, sequence(step), step)
	outcomes := make(chan Outcome, 2)
	run := func() {
		out, err := rt.Run(context.Background(), startOf("a", 1))
		if err != nil {
			t.Error(err)
		}
		outcomes <- out
	}
	go run()
	<-running
	if _, err := rt.Run(t.Context(), Start{ID: "a", Orchestrator: "test", Input: []byte("1"), CorrelationID: "another"}); !errors.Is(err, ErrConflict) {
		t.Errorf("another correlation id: %v", err)
	}
	go run()
	close(release)
	first, second := <-outcomes, <-outcomes
	if l.count("step") != 1 || first.Status != Completed || second.Status != Completed {
		t.Errorf("%d calls, %s, %s", l.count("step"), first.Status, second.Status)
	}
}

func TestTwoProcessesCannotBothCommit(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	const processes = 4
	errs := make(chan error, processes)
	for range processes {
		rt := w.process(t, nil, sequence(step), step)
		go func() {
			for {
				out, err := rt.Run(context.Background(), startOf("a", 20))
				if errors.Is(err, ErrElsewhere) {
					continue
				}
				if err == nil && string(out.Output) != "20" {
					err = fmt.Errorf("output %s", out.Output)
				}
				errs <- err
				return
			}
		}()
	}
	for range processes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	all := w.stored(t, "a")
	if len(all) != 1 || len(all[0].rounds) != 21 {
		t.Errorf("%d executions", len(all))
	}
}
