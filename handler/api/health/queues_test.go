package health

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// Messages that nobody receives are told of, first as a warning and then as a failure, until somebody receives them. Whoever receives
// one after the other, however old they are, is not told of.
func TestQueuesThatNobodyListensTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newWorld(t), queues.NewMemory()
		w.config.Now = time.Now
		testenv.Check(t, errors.Join(store.CreateQueue(t.Context(), "work"), store.CreateQueue(t.Context(), "busy")))
		w.config.Heads = (&queueprobe.Heads{Queues: store, Names: []string{"busy", "work"}}).Look
		checks := w.checks(t)
		for range 100 {
			testenv.Done(t)(store.Send(t.Context(), "busy", []byte("x"), 0))
		}
		take := func(queue string) {
			t.Helper()
			got, err := store.Receive(t.Context(), queue, 1, time.Hour)
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			testenv.Check(t, store.Delete(t.Context(), queue, got[0].ID, got[0].PopReceipt))
		}
		look := func(want Status) {
			t.Helper()
			r := checks.Full(t.Context())
			m := r.Checks[stuckCheck][0]
			if m.Status != want || r.Status != want || strings.Contains(m.Output, "work (1 messages") != (want != Pass) || strings.Contains(m.Output, "busy") {
				t.Errorf("want %s: %+v", want, m)
			}
			take("busy")
			time.Sleep(time.Minute)
		}
		look(Pass)
		testenv.Done(t)(store.Send(t.Context(), "work", []byte("x"), 0))
		for minute := range 25 {
			switch {
			case minute < 10:
				look(Pass)
			case minute < 20:
				look(Warn)
			default:
				look(Fail)
			}
		}
		take("work")
		look(Pass)
	})
}

// A queue store that does not answer is a failure.
func TestQueuesThatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Heads = func(context.Context) ([]queueprobe.Head, error) { return nil, errors.New("no line") }
	if r := w.checks(t).Full(t.Context()); r.Status != Fail || r.Checks[stuckCheck][0].Status != Fail {
		t.Errorf("%+v", r)
	}
}
