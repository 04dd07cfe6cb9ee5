package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// While Letters fail, a message whose letter is outdated makes no progress.
func TestNothingOvertakesALetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver = func(context.Context, Event) error {
		return &DeliveryError{Permanent: true, Err: errors.New("never")}
	}
	p, id := w.process(t, nil), key(1).String()
	p.add(t, message1(1))
	p.sweep(t)
	attempts := 0
	w.deliver = func(context.Context, Event) error {
		attempts++
		return nil
	}
	w.tellFails = func() error { return errors.New("no table") }
	testenv.OK(t, p.admin.Retry(t.Context(), "acme", id, "me"))
	if err := p.admin.Skip(t.Context(), "acme", id, "me"); err == nil {
		t.Error("another decision went by what its letter has to show")
	}
	for range 3 {
		w.pass(time.Hour)
		p.sweep(t)
		w.check(t, "acme")
	}
	if got := p.get(t, "acme", id); attempts > 0 || got.Status != StatusPending || w.pendingLetters("acme", id) != 1 {
		t.Errorf("%d attempts, %+v", attempts, got)
	}
	w.tellFails = nil
	w.pass(time.Hour)
	p.sweep(t)
	w.check(t, "acme")
	if got := p.get(t, "acme", id); attempts != 1 || got.Status != StatusProcessed || w.pendingLetters("acme", id) != 0 {
		t.Errorf("%d attempts, %+v", attempts, got)
	}
}

// A message without the configuration to send it waits, keeps its retries, is reported once, and continues by itself.
func TestMisconfigured(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"key", "route"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := key(1).String()
			p := w.process(t, nil)
			p.add(t, message1(1))
			if name == "key" {
				w.deliver = func(context.Context, Event) error { return fmt.Errorf("%w: no key k1", ErrMisconfigured) }
			} else {
				p = w.routed(t, nil, []Route{{EventType: "other", Destination: "sink"}}, Destinations{"sink": w})
			}
			began, tries, hour := w.now(), 0, 0
			for w.now().Sub(began) < 24*time.Hour {
				tries += p.sweep(t).Failed
				if got := p.get(t, "acme", id); got.Status != StatusPending || got.RetryCount != 0 || got.WaitsSince.IsZero() || got.Error == "" || len(got.Attempts) != 1 {
					t.Fatalf("after %v: %+v", w.now().Sub(began), got)
				}
				want := boolToInt(w.now().Sub(began) > 10*time.Minute)
				if n := len(w.deaths()); w.now().Sub(began) < 5*time.Minute && n != 0 || n < want || n > 1 {
					t.Fatalf("%d letters after %v", n, w.now().Sub(began))
				}
				w.check(t, "acme")
				if w.now().Sub(began) >= time.Hour {
					w.pass(time.Minute)
					continue
				}
				hour = tries
				w.pass(15 * time.Second)
			}
			if hour > 60 || tries < 24*60/5 || tries > 24*60 {
				t.Errorf("%d looks in the first hour, %d in a day", hour, tries)
			}
			if d := w.deaths()[0]; d.Reason != ReasonMisconfigured || !strings.Contains(d.Error, "not configured") {
				t.Errorf("%+v", d)
			}
			s, err := p.monitor.Snapshot(t.Context())
			if err != nil || s.Misconfigured != 1 || s.Reported != 1 || s.Dead != 0 || s.FailureRatio != 0 || len(s.Misconfigurations) != 1 {
				t.Errorf("%+v, %v", s, err)
			}
			if got := numbers(p.all(t, Filter{Status: StatusFailed})); len(got) != 1 {
				t.Errorf("failed: %v", got)
			}
			w.deliver = nil
			p = w.process(t, nil)
			w.pass(10 * time.Minute)
			p.sweep(t)
			if got := p.get(t, "acme", id); got.Status != StatusProcessed || w.pendingLetters("acme", id) != 0 {
				t.Errorf("%+v", got)
			}
			w.check(t, "acme")
		})
	}
}

// An operator may decide about a waiting message with a letter, as about a dead one; if it is refused later, that is
// another letter, with all retries before it.
func TestMisconfiguredDecisions(t *testing.T) {
	t.Parallel()
	keyless := func(context.Context, Event) error { return fmt.Errorf("%w: no key k1", ErrMisconfigured) }
	id := key(1).String()
	reported := func(t *testing.T) (*world, *process) {
		w := newWorld(t)
		p := w.process(t, nil)
		p.add(t, message1(1))
		w.deliver = keyless
		for len(w.deaths()) == 0 {
			p.sweep(t)
			w.pass(time.Minute)
		}
		return w, p
	}
	ends := func(w *world) (all []ClosedAs) {
		for _, end := range w.lettersOf("acme", id) {
			all = append(all, end)
		}
		return all
	}
	for action, want := range map[Action]struct {
		status Status
		end    ClosedAs
	}{ActionRetry: {StatusPending, ClosedRetried}, ActionReplay: {StatusPending, ClosedRetried}, ActionSkip: {StatusSkipped, ClosedSkipped}} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			w, p := reported(t)
			testenv.OK(t, p.admin.Act(t.Context(), action, "acme", id, Decision{By: "me", Letter: p.get(t, "acme", id).DeadLetter}))
			w.check(t, "acme")
			if diff := cmp.Diff([]ClosedAs{want.end}, ends(w)); diff != "" || p.get(t, "acme", id).Status != want.status {
				t.Errorf("%+v: %s", p.get(t, "acme", id), diff)
			}
			for range 20 {
				p.sweep(t)
				w.pass(time.Minute)
			}
			w.check(t, "acme")
			if again := len(w.deaths()); (again == 2) != (want.status == StatusPending) {
				t.Errorf("%d letters in the end", again)
			}
		})
	}
	t.Run("refused after all", func(t *testing.T) {
		t.Parallel()
		w, p := reported(t)
		w.deliver = func(context.Context, Event) error { return errors.New("down") }
		for range 40 {
			p.sweep(t)
			w.check(t, "acme")
			w.pass(10 * time.Minute)
		}
		got := p.get(t, "acme", id)
		if d := w.deaths(); got.Status != StatusDead || got.RetryCount != 5 || len(d) != 2 || d[1].Reason != ReasonExhausted || d[1].Parent == "" {
			t.Errorf("%+v, letters %+v", got, d)
		}
	})
	t.Run("refused at once", func(t *testing.T) {
		t.Parallel()
		w, p := reported(t)
		w.deliver = func(context.Context, Event) error { return &DeliveryError{Permanent: true, Err: errors.New("never")} }
		w.pass(10 * time.Minute)
		p.sweep(t)
		w.check(t, "acme")
		if d := w.deaths(); len(d) != 2 || d[1].Reason != ReasonPermanent || w.pendingLetters("acme", id) != 1 {
			t.Errorf("letters %+v", d)
		}
	})
}
