package deadevent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

// command is a decision about a dead event, and the resulting states of the event and of its dead letter.
type command struct {
	do     func(ctx context.Context, p *process, id, row string) error
	event  outbox.Status
	letter engine.DeadLetterStatus
	notes  string
}

func commands() map[string]command {
	act := func(action outbox.Action) func(context.Context, *process, string, string) error {
		return func(ctx context.Context, p *process, id, _ string) error {
			return p.admin.Act(ctx, action, tenant, id, outbox.Decision{By: "ann"})
		}
	}
	bulk := func(action outbox.Action) func(context.Context, *process, string, string) error {
		return func(ctx context.Context, p *process, _, _ string) error {
			_, err := p.admin.Bulk(ctx, action, outbox.Filter{Status: outbox.StatusDead}, "ann")
			return err
		}
	}
	decide := func(status engine.DeadLetterStatus) func(context.Context, *process, string, string) error {
		return func(ctx context.Context, p *process, _, row string) error { return p.decide(ctx, row, status) }
	}
	return map[string]command{
		"outbox retry":       {act(outbox.ActionRetry), outbox.StatusPending, engine.StatusResolved, "Retried"},
		"outbox replay":      {act(outbox.ActionReplay), outbox.StatusPending, engine.StatusResolved, "Retried"},
		"outbox skip":        {act(outbox.ActionSkip), outbox.StatusSkipped, engine.StatusResolved, "Skipped"},
		"outbox replay many": {bulk(outbox.ActionReplay), outbox.StatusPending, engine.StatusResolved, "Retried"},
		"outbox skip many":   {bulk(outbox.ActionSkip), outbox.StatusSkipped, engine.StatusResolved, "Skipped"},
		"dlq resolve":        {decide(engine.StatusResolved), outbox.StatusSkipped, engine.StatusResolved, "Skipped"},
		"dlq expire":         {decide(engine.StatusExpired), outbox.StatusSkipped, engine.StatusExpired, ""},
		"dlq retry": {func(ctx context.Context, p *process, _, row string) error {
			_, err := p.retrier.Retry(ctx, Engine, row, "ann")
			return err
		}, outbox.StatusPending, engine.StatusResolved, "Retried"},
	}
}

// A decision on either of the two changes the other, too, and records the decider.
func TestCommands(t *testing.T) {
	t.Parallel()
	for name, c := range commands() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.process(t, nil)
			id := p.kill(t, w, 1)
			died := p.of(t, id)
			if len(died) != 1 || died[0].Status != engine.StatusPending || p.status(t, id) != outbox.StatusDead {
				t.Fatalf("after its death: %+v", died)
			}
			testenv.OK(t, c.do(t.Context(), p, id, died[0].RowKey))
			c.check(t, p, id)
			retried := c.notes == "Retried"
			if l := p.of(t, id)[0]; (l.RetryMessageID == id) != retried || (l.RetryID != "") != retried || (l.RetriedBy == "ann") != retried {
				t.Errorf("it says of the retry: %+v", l)
			}
		})
	}
}

func (c command) check(t *testing.T, p *process, id string) {
	t.Helper()
	letters := p.of(t, id)
	if len(letters) != 1 {
		t.Fatalf("%d dead letters", len(letters))
	}
	type shown struct {
		Event     outbox.Status
		Letter    engine.DeadLetterStatus
		Notes, By string
	}
	l := letters[0]
	want, got := shown{c.event, c.letter, c.notes, "ann"}, shown{p.status(t, id), l.Status, l.ResolutionNotes, l.ResolvedBy}
	testenv.Equal(t, "", want, got)
}

// A process dies between the two writes of a command: a sweep makes the second one, without a repeat of the command.
// If nothing was written, both are unchanged.
func TestCommandsCrash(t *testing.T) {
	t.Parallel()
	for name, c := range commands() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t)
			healthy := newWorld(t)
			count := &faults.Plan{}
			id := healthy.process(t, nil).kill(t, healthy, 1)
			testenv.OK(t, c.do(t.Context(), healthy.process(t, count), id, healthy.process(t, nil).of(t, id)[0].RowKey))
			for at := 1; at <= len(count.Calls()); at++ {
				for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied, faults.Unknown, faults.Throttled, faults.Conflict, faults.Precondition} {
					if !sample.Keep(t, fault, at) {
						continue
					}
					w := newWorld(t)
					id := w.process(t, nil).kill(t, w, 1)
					row := w.process(t, nil).of(t, id)[0].RowKey
					plan := &faults.Plan{At: at, Fault: fault}
					err := c.do(t.Context(), w.process(t, plan), id, row)
					w.answers(refuse) // a restarted one dies again, and has a second letter
					p := w.process(t, nil)
					p.sweep(t)
					where := fmt.Sprintf("%s at call %d (%v)", fault, at, err)
					letters := p.of(t, id)
					pending := 0
					for _, l := range letters {
						if l.Status == engine.StatusPending {
							pending++
						}
					}
					dead := p.status(t, id) == outbox.StatusDead
					if dead != (pending == 1) || pending > 1 {
						t.Errorf("%s: the event is %s with %d pending letters", where, p.status(t, id), pending)
					}
					switch first := letters[0]; {
					case len(letters) == 2 && (first.ResolutionNotes != "Retried" || letters[1].ParentRowKey != first.RowKey || letters[1].RetryCount != 1):
						t.Errorf("%s: %+v is followed by %+v", where, first, letters[1])
					case len(letters) == 1 && c.event == outbox.StatusSkipped && !dead:
						want := c
						if name == "dlq resolve" && first.ResolutionNotes == "" {
							want.notes = "" // the decision itself has written it, without notes
						}
						want.check(t, p, id)
					case err == nil && dead && len(letters) == 1:
						t.Errorf("%s: nothing came of it: %+v", where, first)
					}
				}
			}
		})
	}
}

// An event that dies in a process that crashes is dead once, with one dead letter, at any crash.
func TestDeathsCrash(t *testing.T) {
	t.Parallel()
	sample.Repeat(t)
	healthy, count := newWorld(t), &faults.Plan{}
	healthy.answers(refuse)
	healthy.process(t, nil).add(t, 1)
	healthy.process(t, count).sweep(t)
	for at := 1; at <= len(count.Calls()); at++ {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied, faults.Unknown, faults.Throttled, faults.Precondition} {
			if !sample.Keep(t, fault, at) {
				continue
			}
			w := newWorld(t)
			id := w.process(t, nil).add(t, 1)
			w.answers(refuse)
			plan := &faults.Plan{At: at, Fault: fault}
			_, _ = w.process(t, plan).dispatcher.Sweep(t.Context())
			p := w.process(t, nil)
			for range 2 {
				w.pass(time.Hour)
				p.sweep(t)
			}
			if letters := p.of(t, id); p.status(t, id) != outbox.StatusDead || len(letters) != 1 || letters[0].Status != engine.StatusPending {
				t.Errorf("%s at call %d: %s, %+v", fault, at, p.status(t, id), letters)
			}
		}
	}
}

// A dead letter that was resolved or expired by mistake can be pending again, as long as its event was skipped with
// it.
func TestReopen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.process(t, nil)
	for n, status := range []engine.DeadLetterStatus{engine.StatusResolved, engine.StatusExpired} {
		id := p.kill(t, w, n)
		row := p.of(t, id)[0].RowKey
		testenv.OK(t, errors.Join(p.decide(t.Context(), row, status), p.decide(t.Context(), row, engine.StatusPending)))
		if l := p.of(t, id); p.status(t, id) != outbox.StatusDead || len(l) != 1 || l[0].Status != engine.StatusPending || l[0].ResolvedBy != "" {
			t.Errorf("%s: %s, %+v", status, p.status(t, id), l)
		}
		testenv.OK(t, p.admin.Retry(t.Context(), tenant, id, "ann"))
		p.sweep(t)
		if err := p.decide(t.Context(), row, engine.StatusPending); !errors.Is(err, engine.ErrState) || p.status(t, id) != outbox.StatusProcessed {
			t.Errorf("of an event that has left: %v, %s", err, p.status(t, id))
		}
	}
}

// Each death has its own letter, whose parent is the previous one; in the end, none is pending.
func TestDeathsFollowEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.process(t, nil)
	id := p.kill(t, w, 1)
	w.answers(refuse)
	for range 3 {
		testenv.OK(t, p.admin.Retry(t.Context(), tenant, id, "ann"))
		p.sweep(t)
	}
	letters := p.of(t, id)
	if len(letters) != 4 {
		t.Fatalf("%d letters", len(letters))
	}
	for i, l := range letters[1:] {
		if l.ParentRowKey != letters[i].RowKey || l.RetryCount != i+1 || letters[i].Status != engine.StatusResolved {
			t.Errorf("%+v does not follow %+v", l, letters[i])
		}
		if back, err := p.letters.FailedAgain(t.Context(), Engine, letters[i].RowKey); err != nil || !back {
			t.Errorf("%s did not come back: %v", letters[i].RowKey, err)
		}
	}
}

// Leftovers of an older version are fixed: a letter that stayed pending when its event was retried, and one whose
// event was deleted.
func TestRowsOfBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.process(t, nil)
	stale := func(id string) string {
		l := engine.DeadLetter{Engine: Engine, MessageID: id, InsertedAtUtc: w.clock(), InstanceID: tenant, TenantID: tenant, OriginalQueue: noQueue,
			OriginalMessage: []byte(`{}`), ErrorMessage: "refused", LastFailureAtUtc: w.clock(), CorrelationID: id}
		testenv.Must(p.letters.Add(t.Context(), l))(t)
		return l.Key()
	}
	gone := stale("gone")
	if _, err := p.retrier.Retry(t.Context(), Engine, gone, "ann"); !errors.Is(err, engine.ErrNotRetryable) {
		t.Errorf("retry of what is gone: %v", err)
	}
	if err := p.decide(t.Context(), gone, engine.StatusResolved); err != nil {
		t.Error(err)
	}
	if err := p.decide(t.Context(), gone, engine.StatusPending); !errors.Is(err, engine.ErrState) {
		t.Errorf("what is gone is pending again: %v", err)
	}
	id := p.add(t, 1)
	before := stale(id)
	w.answers(refuse)
	p.sweep(t)
	letters := p.of(t, id)
	if len(letters) != 2 || letters[1].RowKey != before && letters[0].RowKey != before {
		t.Fatalf("%+v", letters)
	}
	pending := 0
	for _, l := range letters {
		if l.Status == engine.StatusPending {
			pending++
		} else if l.RowKey != before || l.ResolutionNotes != followedNote {
			t.Errorf("%+v", l)
		}
	}
	testenv.Equal(t, "pending letters", 1, pending)
}
