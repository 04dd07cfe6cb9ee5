package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

// settle delivers signals until the queue is empty.
func (w *world) settle(t *testing.T, rt *Runtime) {
	t.Helper()
	for range 1000 {
		if w.deliver(t.Context(), t, rt) {
			continue
		}
		if n, err := w.queues.Length(t.Context(), signalQueue); err != nil || n == 0 {
			return
		}
		time.Sleep(30 * time.Minute)
	}
	t.Fatal("the queue does not become empty")
}

func mustGet(t *testing.T, rt *Runtime, id string) Outcome {
	t.Helper()
	out := must(rt.Get(t.Context(), id))(t)
	return out
}

func TestSuspendAndResume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := withEvents(l)
		rt := w.signalling(t, nil, orchestrators, activities)
		if out := mustRun(t, rt, startOf("a", 1)); !out.Woken {
			t.Fatalf("%+v", out)
		}
		noError(t, rt.Suspend(t.Context(), "a", "maintenance"))
		raise(t, w, "a", 1, time.Second)
		for range 2 {
			w.deliver(t.Context(), t, rt)
			time.Sleep(2 * time.Second)
		}
		row, err := w.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: "a", Row: statusRow})
		if out := mustGet(t, rt, "a"); err != nil || out.Status != Suspended || row.String("RuntimeStatus") != "Suspended" || l.count("step(1)") != 0 {
			t.Errorf("%s %s, calls %v", out.Status, row.String("RuntimeStatus"), l.all())
		}
		noError(t, rt.Resume(t.Context(), "a", ""))
		w.deliver(t.Context(), t, rt)
		if out := mustGet(t, rt, "a"); out.Status != Running || l.count("step(1)") != 1 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); string(out.Output) != `"1 none"` {
			t.Errorf("%s %s", out.Status, out.Output)
		}
		w.stored(t, "a")
	})
}

// A wait that has timed out gets no event: the next wait gets it.
func TestAnEventGoesToWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, _ int) ([]int, error) {
			var got []int
			for range 5 {
				e := Event[int](ctx, "number")
				if Any(ctx, e, Timer(ctx, time.Hour)) == 1 {
					got = append(got, 0)
					continue
				}
				v, err := e.Await()
				if err != nil {
					return nil, err
				}
				got = append(got, v)
			}
			return got, nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		mustRun(t, rt, startOf("a", 1))
		raise(t, w, "a", 1, 150*time.Minute) // in the third wait
		raise(t, w, "a", 2, 151*time.Minute)
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); string(out.Output) != "[0,0,1,2,0]" {
			t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
		}
		history, err := rt.Export(t.Context(), "a")
		if err != nil || Replay(o, history) != nil {
			t.Errorf("replay: %v %v", err, Replay(o, history))
		}
	})
}

func TestTerminateTakesTheChildrenWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := withWaitingChild(l)
		rt := w.signalling(t, nil, orchestrators, activities)
		mustRun(t, rt, startOf("a", 1))
		for range 2 { // the second finds the end, and changes nothing
			noError(t, rt.Terminate(t.Context(), "a", "no longer needed"))
		}
		w.settle(t, rt)
		parent := mustGet(t, rt, "a")
		child := mustGet(t, rt, parent.Calls[0].Child)
		if parent.Status != Terminated || child.Status != Terminated || !strings.Contains(parent.Failure.Message, "no longer needed") || !parent.Failure.Permanent {
			t.Errorf("%+v\n%+v", parent, child)
		}
		w.stored(t, "a")
		w.stored(t, parent.Calls[0].Child)
		if out := mustRun(t, rt, startOf("a", 1)); out.Status != Terminated {
			t.Errorf("a message revived it: %+v", out)
		}
	})
}

// A running driver adds a signal to its next round. The signal is acknowledged when the orchestration rests.
func TestASignalJoinsTheDriver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		block := NewActivity("block", func(context.Context, int) (int, error) { <-release; return 0, nil })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			blocked := block.Call(ctx, n)
			v, err := Event[int](ctx, "number").Await()
			if err != nil {
				return 0, err
			}
			_, err = blocked.Await()
			return v, err
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{block})
		ran := make(chan Outcome)
		go func() {
			out, err := rt.Run(context.Background(), startOf("a", 1))
			if err != nil {
				t.Error(err)
			}
			ran <- out
		}()
		synctest.Wait()
		raise(t, w, "a", 5, 0)
		delivered := make(chan bool)
		go func() { delivered <- w.deliver(t.Context(), t, rt) }()
		synctest.Wait()
		if all := w.stored(t, "a"); len(all[0].rounds) != 2 || all[0].rounds[1].Learned[0].Kind != eventRaised {
			t.Errorf("%d rounds", len(all[0].rounds))
		}
		select {
		case <-delivered:
			t.Error("the signal is acknowledged while its orchestration runs")
		default:
		}
		close(release)
		if !<-delivered {
			t.Error("there was no signal")
		}
		if out := <-ran; string(out.Output) != "5" {
			t.Errorf("%+v", out)
		}
	})
}

func TestEndedIsToldUntilItIsHeard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := withEventLoop(l)
		var told []Outcome
		c := Config{Orchestrators: orchestrators, Activities: activities, Queues: w.queues, Ended: func(_ context.Context, out Outcome) error {
			if told = append(told, out); len(told) < 3 {
				return errors.New("not now")
			}
			return nil
		}}
		rt := w.configured(t, nil, c)
		s := startOf("a", 1)
		s.Carry = []byte("carried")
		mustRun(t, rt, s)
		raiseEvents(t, w)
		w.settle(t, rt)
		// The duplicates after the end report it again.
		if len(told) < 3 || told[2].Status != Completed || string(told[2].Carry) != "carried" || told[2].Orchestrator != "test" {
			t.Errorf("told %+v", told)
		}
	})
}

func TestASignalWaitsForItsOrchestration(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	orchestrators, activities := withEvents(l)
	rt := w.signalling(t, nil, orchestrators, activities)
	s := Signal{SignalID: "1", InstanceID: "nobody", RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Event: "number"}}
	if _, err := rt.Deliver(t.Context(), s); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := w.process(t, nil, orchestrators[0]).Raise(t.Context(), "a", "number", 1, ""); !errors.Is(err, ErrNoSignals) {
		t.Errorf("%v", err)
	}
}

func TestDecodeSignal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	good := Signal{SignalID: "s", InstanceID: "a", RuntimeProvider: provider, Type: ExternalSignal, OccurredAtUtc: now, DueAtUtc: &now,
		ExpectedVersion: 3, WaitingToken: "1-2", Payload: Payload{Event: "e", Data: []byte(`{"a":1}`)}}
	text := must(json.Marshal(good))(t)
	want := `{"signalId":"s","workflowInstanceId":"a","runtimeProvider":"roundhouse","signalType":"ExternalSignal","expectedVersion":3,` +
		`"waitingToken":"1-2","occurredAtUtc":"2026-11-21T10:00:00Z","dueAtUtc":"2026-11-21T10:00:00Z","payload":{"event":"e","data":{"a":1}}}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
	if got, err := DecodeSignal(text); err != nil || cmp.Diff(good, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(good, got))
	}
	for _, bad := range []string{"", "[]", "{}", `{"signalId":"s","workflowInstanceId":"a","runtimeProvider":"other","signalType":"TimerDue"}`,
		strings.Replace(want, "ExternalSignal", "Surprise", 1), strings.Replace(want, `"event":"e",`, "", 1),
		strings.Replace(want, `"event":"e"`, `"command":"explode"`, 1), strings.Replace(want, `"event":"e"`, `"event":"e","command":"resume"`, 1)} {
		if _, err := DecodeSignal([]byte(bad)); !errors.Is(err, ErrSignal) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzDecodeSignal(f *testing.F) {
	f.Add([]byte(`{"signalId":"s","workflowInstanceId":"a","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"e"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := DecodeSignal(body)
		if err != nil && !errors.Is(err, ErrSignal) {
			t.Errorf("untyped error %v", err)
		}
		if err == nil {
			s.event()
		}
	})
}
