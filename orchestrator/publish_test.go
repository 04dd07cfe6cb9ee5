package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
)

// post receives events. It identifies them by their keys, as the outbox does.
type post struct {
	refuse int // how often
	events []Publication
}

func (p *post) publish(_ context.Context, events []Publication) error {
	if p.refuse--; p.refuse >= 0 {
		return errors.New("the outbox does not take it")
	}
	for _, e := range events {
		if !slices.ContainsFunc(p.events, func(had Publication) bool { return had.Key == e.Key && had.TenantID == e.TenantID }) {
			p.events = append(p.events, e)
		}
	}
	return nil
}

// withNews publishes before, between and after its steps, the same twice, and fails once, because of a call.
func withNews(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	late := NewActivity("late", func(ctx context.Context, n int) (int, error) {
		if Info(ctx).Execution == 1 {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
		v := 0
		for i := range 3 {
			text := fmt.Appendf(nil, `{"step":%d}`, i/2)
			if err := ctx.Publish(Publication{TenantID: "t", Type: "step", Payload: text}); err != nil {
				return 0, err
			}
			var err error
			if v, err = step.Call(ctx, v).Await(); err != nil {
				return 0, err
			}
		}
		if err := ctx.Publish(Publication{TenantID: "t", Type: "end", Payload: []byte("3"), Key: "mine"}); err != nil {
			return 0, err
		}
		if _, err := late.Call(ctx, v).Await(); err != nil {
			return 0, err
		}
		return v, nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, late}
}

// An event is sent if and only if its round is committed, regardless of faults in between: of all rounds, those of the
// failed execution included, and once for each place.
func TestPublishedWithItsRound(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan, refuse int) {
		w, l, p := newWorld(t), &ledger{}, &post{refuse: refuse}
		orchestrators, activities := withNews(l)
		c := Config{Orchestrators: orchestrators, Activities: activities, Publish: p.publish}
		rt := w.configured(t, plan, c)
		for range 20 {
			out, err := rt.Run(t.Context(), startOf("a", 1))
			plan.Wait()
			if err == nil && out.Status == Completed {
				break
			}
			if plan.Crashed() {
				rt = w.configured(t, nil, c)
			}
			keys := map[string]bool{}
			for _, g := range w.stored(t, "a") {
				for _, r := range g.rounds {
					for _, e := range r.Decided {
						keys[e.target().Child] = keys[e.target().Child] || e.Kind == eventPublished
					}
				}
			}
			for _, e := range p.events {
				if !keys[e.Key] {
					t.Errorf("%s left, and no round holds it", e.Key)
				}
			}
		}
		var got []string
		for _, e := range p.events {
			got = append(got, e.TenantID+" "+e.Type+" "+string(e.Payload)+" "+e.CorrelationID)
		}
		want := []string{`t step {"step":0} corr`, `t step {"step":0} corr`, `t step {"step":1} corr`, "t end 3 corr"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count, 0) })
	for at := range count.Calls() {
		for _, fault := range faults.Faults() {
			inSample(t, fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}, 0) })
		}
	}
	for refuse := range 5 {
		t.Run(fmt.Sprintf("refused-%d", refuse), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{}, refuse) })
		})
	}
}

func TestPublishWithoutAPublisher(t *testing.T) {
	t.Parallel()
	orchestrators, activities := withNews(&ledger{})
	out := mustRun(t, newWorld(t).process(t, nil, orchestrators[0], activities...), startOf("a", 1))
	if out.Status != Failed || !out.Failure.Permanent {
		t.Errorf("%s, %v", out.Status, out.Failure)
	}
}
