package poller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// A failing poller reports it in its state from its first failed tick on, with at most one write per minute, and no
// longer once a tick succeeds. A quiet poller writes nothing.
func TestTickFailuresAreInTheState(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		began := time.Now().UTC()
		broken := errors.New("the table orders is not there; password=hunter2")
		w.source.Fail(broken)
		r := w.process(nil, nil)
		for range 144 { // every ten seconds
			if _, err := r.Tick(t.Context()); !errors.Is(err, broken) {
				t.Fatal(err)
			}
			wait(10 * time.Second)
		}
		got := w.document()
		if f := got.TickFailure; f == nil || !strings.Contains(f.Error, "the table orders is not there") || strings.Contains(f.Error, "hunter2") {
			t.Fatalf("%+v", f)
		}
		want := &poller.TickFailure{Ticks: 139, FirstAt: began, LastAt: began.Add(1380 * time.Second)}
		testenv.Equal(t, "", want, got.TickFailure, cmpopts.IgnoreUnexported(poller.TickFailure{}), cmpopts.IgnoreFields(poller.TickFailure{}, "Error"))
		if n := w.state.count(); n != 24 || got.Lease.Token != 0 {
			t.Errorf("%d writes, token %d", n, got.Lease.Token)
		}
		w.source.Fail(nil)
		w.tick(r)
		if got = w.document(); got.TickFailure != nil {
			t.Errorf("after a tick that has found nothing: %+v", got.TickFailure)
		}
		before := w.state.count()
		w.tick(r)
		if n := w.state.count(); n != before {
			t.Errorf("a quiet poller wrote %d times", n-before)
		}
		w.source.Fail(broken)
		if _, err := r.Tick(t.Context()); !errors.Is(err, broken) || w.document().TickFailure == nil || w.document().TickFailure.Ticks != 1 {
			t.Errorf("the first failure after a success: %v, %+v", err, w.document().TickFailure)
		}
		w.source.Fail(nil)
		w.source.Append(3)
		if result := w.tick(r); result.Rows != 3 || w.document().TickFailure != nil {
			t.Errorf("after a tick with rows: %+v", w.document().TickFailure)
		}
	})
}

// A rejected batch has its own record, an error before it has the other one, and neither outlives its cause.
func TestTickFailureAndFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(2)
		w.source.Fail(errors.New("away"))
		r := w.process(nil, nil)
		if _, err := r.Tick(t.Context()); err == nil {
			t.Fatal("it succeeded")
		}
		w.source.Fail(nil)
		refused := errors.New("not now")
		w.deliver = func(context.Context, poller.Delivery) error { return refused }
		if _, err := r.Tick(t.Context()); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if d := w.document(); d.TickFailure != nil || d.Failure == nil {
			t.Errorf("%+v, %+v", d.TickFailure, d.Failure)
		}
	})
}

// A changed definition of the source is in the state, too, and is removed when the change is reverted.
func TestChangedDefinitionIsInTheState(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		w.tick(w.process(nil, nil))
		changed := w.process(nil, func(c *poller.RunnerConfig) { c.Source = redefined{w.source} })
		if _, err := changed.Tick(t.Context()); !errors.Is(err, poller.ErrFingerprint) {
			t.Fatal(err)
		}
		if f := w.document().TickFailure; f == nil || !strings.Contains(f.Error, "accept-fingerprint") {
			t.Errorf("%+v", f)
		}
		w.tick(w.process(nil, nil))
		if f := w.document().TickFailure; f != nil {
			t.Errorf("put back: %+v", f)
		}
	})
}

// No record is written to a state that is leased, retired or unreadable, or when the process stops.
func TestTickFailuresLeaveOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		failures := func() *poller.TickFailures { return &poller.TickFailures{Store: w.store(), Poller: name} }
		stopping, stop := context.WithCancel(t.Context())
		stop()
		if err := failures().Add(stopping, errors.New("stopped")); err != nil || w.state.count() != 0 {
			t.Errorf("stopping: %d writes, %v", w.state.count(), err)
		}
		w.source.Append(1)
		w.deliver = func(ctx context.Context, _ poller.Delivery) error {
			before := w.state.count()
			if err := failures().Add(ctx, errors.New("another process")); err != nil || w.state.count() != before {
				t.Errorf("under a lease: %d writes, %v", w.state.count()-before, err)
			}
			return nil
		}
		w.tick(w.process(nil, nil))
		testenv.Must(w.operator().Retire(t.Context(), name, poller.ChangeOptions{}))(t)
		before := w.state.count()
		if err := failures().Add(t.Context(), errors.New("retired")); err != nil || w.state.count() != before {
			t.Errorf("retired: %d writes, %v", w.state.count()-before, err)
		}
	})
}

// Faults of storage at the record of a failure change neither the checkpoint nor the token, and the tick's own error is
// returned.
func TestTickFailuresUnderFaults(t *testing.T) {
	for n, fault := range slices.Repeat(faults.Faults(), 2) {
		t.Run(fmt.Sprint(n, " ", fault), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.Append(2)
				w.tick(w.process(nil, nil))
				before := w.document()
				broken := errors.New("away")
				w.source.Fail(broken)
				plan := &faults.Plan{At: 3 + n/len(faults.Faults()), Fault: fault} // after the tick's read and fetch: the record's read, then its write
				if _, err := w.process(plan, nil).Tick(t.Context()); !errors.Is(err, broken) {
					t.Errorf("%v: %v", fault, err)
				}
				w.source.Fail(nil)
				w.tick(w.process(nil, nil))
				after := w.document()
				if after.TickFailure != nil || after.Lease.Token != before.Lease.Token || !after.Cursor().Equal(before.Cursor()) {
					t.Errorf("%v: %+v", fault, after)
				}
			})
		})
	}
}
