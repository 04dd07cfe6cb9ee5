package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

// Events of any size arrive, regardless of failures, and the purge deletes them.
func TestLargeEventsArrive(t *testing.T) {
	bulky(t)
	t.Parallel()
	largeEvents(2 << 20).runs(t)
	largeEvents(100<<10).runs(t, faults.CrashBefore, faults.CrashAfter)
}

func largeEvents(size int) flow {
	big := strings.Repeat("x", size)
	f := flow{make: func(*ledger) ([]AnyOrchestrator, []AnyActivity) {
		return []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) ([]int, error) {
			var sizes []int
			for range 2 {
				v, err := Event[string](ctx, "big").Await()
				if err != nil {
					return nil, err
				}
				sizes = append(sizes, len(v))
			}
			return sizes, nil
		})}, nil
	}, output: fmt.Sprintf("[%d,50000]", size)}
	f.steps = []outside{raising(time.Minute, "a", "big", big), raising(time.Hour, "a", "BIG", big[:50_000])}
	f.check = func(t *testing.T, w *world, rt *Runtime, _ *ledger) {
		held := 0
		for _, err := range blobs.All(t.Context(), w.blobs, "orchestrations", "a/") {
			if err != nil {
				t.Fatal(err)
			}
			held++
		}
		if err := rt.Purge(t.Context(), "a"); err != nil || held < 1 { // that of the round; those of the messages are gone
			t.Errorf("%d blobs, purge: %v", held, err)
		}
		for name, err := range blobs.All(t.Context(), w.blobs, "orchestrations", "a/") {
			t.Errorf("blob %s stays, %v", name, err)
		}
	}
	return f
}

// A late duplicate of a claimed signal without its payload is acknowledged and changes nothing.
func TestLateDuplicatesOfClaimedSignals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		a := NewActivity("large", func(_ context.Context, in string) (string, error) { l.add("large"); return in + in, nil })
		rt := spreadOut(t, w, 5, 20<<10, a)
		if !w.runActivities(t.Context(), t, rt) {
			t.Fatal("no batch")
		}
		s, m, ok := w.receive(t, time.Minute)
		if !ok || !w.holds(t, "a", s.Payload.Blob) {
			t.Fatalf("%+v", s)
		}
		noError(t, errorOf(rt.Deliver(t.Context(), s)))
		if w.holds(t, "a", s.Payload.Blob) {
			t.Error("the payload stays")
		}
		before := w.rows(t, "a")
		if _, err := rt.Deliver(t.Context(), s); err != nil {
			t.Errorf("delivered again: %v", err)
		}
		w.unchanged(t, "a", before)
		noError(t, w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
		if out := mustGet(t, rt, "a"); out.Status != Completed || l.count("large") != 5 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
		noError(t, rt.Purge(t.Context(), "a"))
		if _, err := rt.Deliver(t.Context(), s); err != nil {
			t.Errorf("delivered after the purge: %v", err)
		}
	})
}

// A large event's blob is deleted when the event is in the rounds, that of another event with the same value remains,
// and one that is deleted before is a visible error.
func TestBlobsOfEventsGo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			for range 3 {
				s, err := Event[string](ctx, "large").Await()
				if err != nil {
					return 0, err
				}
				n += len(s)
			}
			return n, nil
		})}, nil)
		mustRun(t, rt, startOf("a", 0))
		value := incompressible(queues.MaxBody)
		var signals []Signal
		for _, id := range []string{"1", "2", "3"} {
			noError(t, rt.Raise(t.Context(), "a", "large", value, id))
			s, _, ok := w.receive(t, time.Hour)
			if !ok || !w.holds(t, "a", s.Payload.Blob) {
				t.Fatalf("%+v", s)
			}
			signals = append(signals, s)
		}
		for range 2 { // and once more
			noError(t, errorOf(rt.Deliver(t.Context(), signals[0])))
		}
		if w.holds(t, "a", signals[0].Payload.Blob) || !w.holds(t, "a", signals[1].Payload.Blob) {
			t.Error("not the blob of the first event, and that alone, is gone")
		}
		noError(t, rt.dropBlob(t.Context(), "a", signals[1].Payload.Blob))
		before := w.rows(t, "a")
		if _, err := rt.Deliver(t.Context(), signals[1]); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "raise the event again") {
			t.Errorf("%v", err)
		}
		w.unchanged(t, "a", before)
		noError(t, errorOf(rt.Deliver(t.Context(), signals[2])))
		if out := mustGet(t, rt, "a"); len(out.Calls) != 3 || out.Status != Running {
			t.Errorf("%s, %d calls", out.Status, len(out.Calls))
		}
	})
}

// An invalid blob name is rejected: no message reaches into another orchestration.
func TestSignalsNameOnlyTheirOwnBlobs(t *testing.T) {
	t.Parallel()
	for _, blob := range []string{"../b/" + hashOf(nil), "x", strings.ToUpper(hashOf(nil)) + "/", hashOf(nil)[:62]} {
		s := Signal{SignalID: "s", InstanceID: "a", RuntimeProvider: provider, Type: InternalContinue, Payload: Payload{Blob: blob}}
		text := must(marshal(s))(t)
		if _, err := DecodeSignal(text); !errors.Is(err, ErrSignal) {
			t.Errorf("blob %q: %v", blob, err)
		}
		b := must(marshal(activityBatch{RuntimeProvider: provider, Orchestration: "a", Execution: 1, Blob: blob}))(t)
		if _, err := decodeBatch(queues.Decode(string(b))); !errors.Is(err, ErrBatch) {
			t.Errorf("blob %q: %v", blob, err)
		}
	}
}
