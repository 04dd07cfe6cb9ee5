package deadevent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

// reference is the expected state of an event and its letters, in the simplest form.
type reference struct {
	event   outbox.Status
	letters []engine.DeadLetterStatus
	// retried are the letters whose event was restarted: another retry of them does nothing.
	retried map[int]bool
}

func (r *reference) last() int { return len(r.letters) - 1 }

// away sets the new status of the dead event, and that of its letter.
func (r *reference) away(event outbox.Status, letter engine.DeadLetterStatus) {
	if r.event == outbox.StatusDead {
		r.letters[r.last()] = letter
		r.retried[r.last()] = event == outbox.StatusPending
	}
	r.event = event
}

// act applies an action to the event; it reports whether the status allows it.
func (r *reference) act(a outbox.Action) bool {
	ended := r.event == outbox.StatusProcessed || r.event == outbox.StatusSkipped
	switch {
	case ended && a != outbox.ActionReplay:
		return false
	case a == outbox.ActionSkip:
		r.away(outbox.StatusSkipped, engine.StatusResolved)
	default:
		r.away(outbox.StatusPending, engine.StatusResolved)
	}
	return true
}

// decide applies a decision to a letter.
func (r *reference) decide(n int, to engine.DeadLetterStatus) bool {
	from := r.letters[n]
	switch {
	case from == to:
		return true
	case from == engine.StatusPending:
		r.away(outbox.StatusSkipped, to)
	case to == engine.StatusPending:
		if n != r.last() || r.event != outbox.StatusSkipped {
			return false
		}
		r.event, r.letters[n], r.retried[n] = outbox.StatusDead, to, false
	case from == engine.StatusResolved:
		return false
	default:
		r.letters[n] = to
	}
	return true
}

// retry applies a retry to a letter.
func (r *reference) retry(n int) bool {
	if r.letters[n] == engine.StatusPending {
		r.away(outbox.StatusPending, engine.StatusResolved)
		return true
	}
	return r.retried[n]
}

// sweep applies a dispatcher's work.
func (r *reference) sweep(refused bool) {
	switch {
	case r.event != outbox.StatusPending:
	case refused:
		r.event, r.letters = outbox.StatusDead, append(r.letters, engine.StatusPending)
	default:
		r.event = outbox.StatusProcessed
	}
}

// After any decisions, through any entry point, an event is dead if and only if it has one pending letter, and all
// counts agree.
func TestCountsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		p := w.process(t, nil)
		events, refused := map[string]*reference{}, map[string]bool{}
		w.answers(func(id string) error {
			if refused[id] {
				return refuse(id)
			}
			return nil
		})
		var ids []string
		for n := range rapid.IntRange(1, 4).Draw(rt, "events") {
			id := p.add(t, n)
			ids, events[id] = append(ids, id), &reference{event: outbox.StatusPending, retried: map[int]bool{}}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "event")
			refused[id] = rapid.Bool().Draw(rt, "refused")
			step(rt, t, p, id, events[id])
			if rapid.Bool().Draw(rt, "sweep") {
				w.pass(time.Minute)
				p.sweep(t)
				for id, r := range events {
					r.sweep(refused[id])
				}
			}
			compare(rt, t, p, events)
		}
	})
}

// step applies one change to an event or to one of its letters, and to their reference.
func step(rt *rapid.T, t *testing.T, p *process, id string, r *reference) {
	what := rapid.SampledFrom([]string{"retry", "skip", "replay", "letter retry", "Resolved", "Expired", "Pending"}).Draw(rt, "what")
	var err error
	var allowed bool
	switch what {
	case "retry", "skip", "replay":
		err = p.admin.Act(t.Context(), outbox.Action(what), tenant, id, outbox.Decision{By: "ann"})
		allowed = r.act(outbox.Action(what))
	default:
		if len(r.letters) == 0 {
			return
		}
		n := rapid.IntRange(0, r.last()).Draw(rt, "letter")
		row := p.of(t, id)[n].RowKey
		if what == "letter retry" {
			_, err = p.retrier.Retry(t.Context(), Engine, row, "ann")
			allowed = r.retry(n)
			break
		}
		err = p.decide(t.Context(), row, engine.DeadLetterStatus(what))
		allowed = r.decide(n, engine.DeadLetterStatus(what))
	}
	if (err == nil) != allowed || err != nil && !errors.Is(err, outbox.ErrState) && !errors.Is(err, engine.ErrState) {
		rt.Fatalf("%s: %v, and is allowed: %v (%+v)", what, err, allowed, r)
	}
}

func compare(rt *rapid.T, t *testing.T, p *process, events map[string]*reference) {
	dead := 0
	for id, r := range events {
		var letters []engine.DeadLetterStatus
		for _, l := range p.of(t, id) {
			letters = append(letters, l.Status)
		}
		if got := p.status(t, id); got != r.event || fmt.Sprint(letters) != fmt.Sprint(r.letters) {
			rt.Fatalf("event %s with letters %v, want %s with %v", got, letters, r.event, r.letters)
		}
		if r.event == outbox.StatusDead {
			dead++
		}
	}
	snapshot, err := outbox.NewMonitor(p.outbox).Snapshot(t.Context())
	counts, err2 := p.letters.Counts(context.WithoutCancel(t.Context()), []string{Engine})
	listed, err3 := p.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{Engine}, Status: engine.StatusPending})
	page, err4 := p.admin.List(t.Context(), outbox.Filter{Status: outbox.StatusDead})
	testenv.OK(rt, errors.Join(err, err2, err3, err4))
	if got := []int{snapshot.Dead, int(counts[0].Pending), len(listed.DeadLetters), len(page.Records)}; got[0] != dead || got[1] != dead || got[2] != dead || got[3] != dead {
		rt.Fatalf("%d are dead; the snapshot, the counts and the lists say %v", dead, got)
	}
}
