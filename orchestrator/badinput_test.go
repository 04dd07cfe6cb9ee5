package orchestrator

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// stall is an orchestration that cannot continue. All causes must look the same: a typed error that names the
// orchestration and the remedy, nothing lost, and nothing else affected. Unreadable rows do not change. If the code is
// the cause, that is recorded once, and the contents of signals are kept.
type stall struct {
	rt *Runtime
	// is is the error's type, says a text in it besides the orchestration's id.
	is   error
	says []string
}

// check drives a stalled orchestration by a signal and by a start. The signal stays for the time after the repair,
// unless the code has to be repaired.
func (s stall) check(t *testing.T, w *world, id string, start Start) {
	t.Helper()
	before, waiting := w.rows(t, id), w.waitingMessages(t)
	if len(before) > 0 && isStall(s.is) {
		s.checkKept(t, w, id, start)
		return
	}
	for range 2 {
		_, byStart := s.rt.Run(t.Context(), start)
		s.checkError(t, "Run", id, byStart)
		if signal, m, ok := w.receive(t, time.Second); ok {
			_, bySignal := s.rt.Deliver(t.Context(), signal)
			s.checkError(t, "Deliver", id, bySignal)
			noError(t, errorOf(w.queues.Renew(t.Context(), signalQueue, m.ID, m.PopReceipt, 0)))
		}
	}
	w.unchanged(t, id, before)
	if n := w.waitingMessages(t); n != waiting {
		t.Errorf("%d messages of %d are left", n, waiting)
	}
	s.checkOther(t)
}

// checkOther runs another orchestration in the same process.
func (s stall) checkOther(t *testing.T) {
	t.Helper()
	other := startOf("other-"+rand.Text(), 1)
	other.Orchestrator = "other"
	if out := mustRun(t, s.rt, other); out.Status != Completed {
		t.Errorf("another orchestration of the same process: %s %v", out.Status, out.Failure)
	}
}

// checkKept is check for code that cannot continue: a start reports that, and a signal is acknowledged, because the
// rounds hold its contents, and that the orchestration is stalled.
func (s stall) checkKept(t *testing.T, w *world, id string, start Start) {
	t.Helper()
	before, kept := w.stored(t, id), []string{}
	for range 2 {
		_, byStart := s.rt.Run(t.Context(), start)
		s.checkError(t, "Run", id, byStart)
		if s.rt.orchestrators[start.Orchestrator] != nil { // a start of an unknown orchestrator is rejected before it reads
			isError(t, "Run", byStart, ErrStalled)
		}
		if signal, m, ok := w.receive(t, time.Second); ok {
			for range 2 {
				out, err := s.rt.Deliver(t.Context(), signal)
				if err != nil || out.Status != Stalled {
					t.Errorf("Deliver: %s %v", out.Status, err)
				}
			}
			if !before[len(before)-1].knows(signal.SignalID) {
				kept = append(kept, signal.SignalID)
			}
			noError(t, w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
		}
	}
	w.onlyStalled(t, id, before, kept...)
	s.checkText(t, "what it shows", id, mustGet(t, s.rt, id).Failure)
	s.checkOther(t)
}

func (g storedExecution) knows(signal string) bool {
	m := g.received()
	return m.contains(signal)
}

// onlyStalled checks that since before, an orchestration has only recorded, once, that it is stalled, and kept the
// contents of these signals. No decision was made.
func (w *world) onlyStalled(t *testing.T, id string, before []storedExecution, signals ...string) {
	t.Helper()
	after := w.stored(t, id)
	was, is := before[len(before)-1], after[len(after)-1]
	if len(after) != len(before) || len(is.rounds) < len(was.rounds) {
		t.Fatalf("%d executions of %d, %d rounds of %d", len(after), len(before), len(is.rounds), len(was.rounds))
	}
	if diff := cmp.Diff(was.rounds, is.rounds[:len(was.rounds)]); diff != "" {
		t.Errorf("the rounds of %s have changed (-before +after):\n%s", id, diff)
	}
	want, got := []string{}, []string{}
	if !was.stalled() {
		want = append(want, string(executionStalled))
	}
	want = append(want, signals...)
	for _, r := range is.rounds[len(was.rounds):] {
		for _, e := range r.Learned {
			if e.signal().ID == "" {
				got = append(got, string(e.Kind))
			} else {
				got = append(got, e.signal().ID)
			}
		}
		if len(r.Decided) > 0 {
			t.Errorf("the stalled orchestration %s has decided %v", id, r.Decided)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what %s has learned since (-want +got):\n%s", id, diff)
	}
	if out := summarize(id, is); out.Status != Stalled || out.Failure == nil {
		t.Errorf("%s shows %s %v", id, out.Status, out.Failure)
	}
}

func (s stall) checkError(t *testing.T, operation, id string, err error) {
	t.Helper()
	if !errors.Is(err, s.is) {
		t.Errorf("%s: %v, want %v", operation, err, s.is)
		return
	}
	s.checkText(t, operation, id, err)
}

func (s stall) checkText(t *testing.T, operation, id string, err error) {
	t.Helper()
	for _, want := range append([]string{"orchestration " + id}, s.says...) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q is not in: %v", operation, want, err)
		}
	}
}

// other is the orchestrator of an unaffected orchestration.
func other() AnyOrchestrator {
	return NewOrchestrator("other", func(ctx *Context, n int) (int, error) {
		_ = ctx.Sleep(time.Second)
		return n, nil
	})
}

// damaged calls two steps, waits for the event "number", and calls a step with it. Its first round is compressed.
func damaged(step *Activity[int, int]) AnyOrchestrator {
	return NewOrchestrator("test", func(ctx *Context, text string) (int, error) {
		for i := range 2 {
			if _, err := step.Call(ctx, i).Await(); err != nil {
				return 0, err
			}
		}
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return 0, err
		}
		v, err = step.Call(ctx, v).Await()
		return v + len(text), err
	})
}

// Every damage stalls the orchestration, which continues to its end when the damage is repaired.
func TestDamagedRoundsStall(t *testing.T) {
	t.Parallel()
	const first, second, third = "r-00000001-00000001", "r-00000001-00000002", "r-00000001-00000003"
	edit := func(row string, change func(e tables.Entity)) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			e := w.row(t, "a", row)
			change(e)
			w.apply(t, tables.Upsert(e))
		}
	}
	remove := func(row string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			w.apply(t, tables.Delete(tables.Key{Partition: "a", Row: row}, ""))
		}
	}
	replaced := func(from, to string) func(tables.Entity) {
		return func(e tables.Entity) {
			data := bytes.Replace(e.Bytes(columnData), []byte(from), []byte(to), 1)
			if bytes.Equal(data, e.Bytes(columnData)) {
				panic("there is no " + from)
			}
			e.Properties[columnData] = data
		}
	}
	tests := map[string]struct {
		damage func(t *testing.T, w *world)
		says   string
		is     error // default ErrCorrupt
	}{
		"bad JSON":          {damage: edit(third, replaced(`{`, `[`)), says: third},
		"cut JSON":          {damage: edit(third, func(e tables.Entity) { e.Properties[columnData] = e.Bytes(columnData)[:20] }), says: third},
		"no data":           {damage: edit(third, func(e tables.Entity) { delete(e.Properties, columnData) }), says: third},
		"unknown encoding":  {damage: edit(second, func(e tables.Entity) { e.Properties[columnEncoding] = "cbor+zstd" }), says: "cbor+zstd"},
		"truncated deflate": {damage: edit(first, func(e tables.Entity) { e.Properties[columnData] = e.Bytes(columnData)[:30] }), says: first},
		"damaged deflate":   {damage: edit(first, func(e tables.Entity) { e.Bytes(columnData)[2] ^= 0xff }), says: first},
		"first round gone":  {damage: remove(first), says: "round 1"},
		"round gone":        {damage: remove(second), says: "round 2"},
		"last round gone":   {damage: remove(third), says: "round 3"},
		"a row that is none": {damage: func(t *testing.T, w *world) {
			w.apply(t, tables.Insert(tables.Entity{Key: tables.Key{Partition: "a", Row: "r-x"}}))
		}, says: "r-x"},
		"unknown result":     {damage: edit(third, replaced(`"ActivityCompleted"`, `"ActivityTeleported"`)), says: "ActivityTeleported", is: ErrNewerSchema},
		"newer encoding":     {damage: edit(second, func(e tables.Entity) { e.Properties[columnEncoding] = encodingJSON + schemaSeparator + "4" }), says: second, is: ErrNewerSchema},
		"status gone":        {damage: remove(statusRow), says: "no status row"},
		"result of no call":  {damage: edit(third, replaced(`"task":2`, `"task":9`)), says: "call 9"},
		"a start in between": {damage: edit(third, replaced(`"learned":[{`, `"learned":[{"kind":"Surprise","at":1},{`)), says: "Surprise", is: ErrNewerSchema},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				step := l.step("step")
				rt := w.signalling(t, nil, []AnyOrchestrator{damaged(step), other()}, []AnyActivity{step})
				start := startOf("a", strings.Repeat("x", 5000))
				mustRun(t, rt, start)
				if got := w.row(t, "a", first).String(columnEncoding); got != encodingDeflate+schemaSeparator+schemaVersion {
					t.Fatalf("the first round is encoded as %s", got)
				}
				raise(t, w, "a", 7, 0)
				good := w.rows(t, "a")

				tt.damage(t, w)
				stalled := stall{rt: rt, is: ErrCorrupt, says: []string{tt.says, "restore"}}
				if tt.is != nil {
					stalled.is, stalled.says[1] = tt.is, "deploy"
				}
				stalled.check(t, w, "a", start)

				noError(t, w.tables.Apply(t.Context(), "orchestrations", tables.Upsert(tables.Entity{Key: tables.Key{Partition: "a", Row: "r-x"}})))
				w.apply(t, tables.Delete(tables.Key{Partition: "a", Row: "r-x"}, ""))
				for _, e := range good {
					w.apply(t, tables.Upsert(e))
				}
				w.settle(t, rt)
				if out := mustGet(t, rt, "a"); string(out.Output) != "5008" {
					t.Errorf("after the repair: %s %s %v", out.Status, out.Output, out.Failure)
				}
				for call, n := range l.all() {
					if n != 1 {
						t.Errorf("%s ran %d times", call, n)
					}
				}
				w.stored(t, "a")
			})
		})
	}
}

// A decision that is unknown to this version stalls: the replay differs, and the error names the decision.
func TestADecisionOfANewerVersionStalls(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{damaged(step), other()}, []AnyActivity{step})
		start := startOf("a", "")
		mustRun(t, rt, start)
		raise(t, w, "a", 7, 0)
		good := w.row(t, "a", roundKey(1, 3))
		newer := w.row(t, "a", roundKey(1, 3))
		newer.Properties[columnData] = bytes.Replace(good.Bytes(columnData), []byte(`"EventAwaited"`), []byte(`"SignalSubscribed"`), 1)
		w.apply(t, tables.Upsert(newer))
		before := w.stored(t, "a")
		for range 2 {
			_, err := rt.Run(t.Context(), start)
			stalled, ok := errors.AsType[*DeterminismError](err)
			if !ok || !errors.Is(err, ErrStalled) || stalled.Orchestration != "a" || stalled.Round != 3 || !strings.Contains(stalled.Recorded, "SignalSubscribed") {
				t.Errorf("%v", err)
			}
			w.deliverDue(t, rt) // the event is acknowledged, because it is kept
		}
		wants(t, "messages", w.waitingMessages(t), 0)
		w.onlyStalled(t, "a", before, "event7")
		w.apply(t, tables.Upsert(good))
		w.attend(t, rt, time.Hour)
		if out := mustGet(t, rt, "a"); string(out.Output) != "8" {
			t.Errorf("after the repair: %s %s %v", out.Status, out.Output, out.Failure)
		}
	})
}

// The contents of a damaged round are data: none of them may crash the process.
func TestDamagedEventsDoNotPanic(t *testing.T) {
	t.Parallel()
	step := (&ledger{}).step("step")
	child := NewOrchestrator("child", func(*Context, int) (int, error) { return 0, nil })
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		_, err := All(step.Call(ctx, 1), child.Call(ctx, 1))
		return 0, err
	})
	const begin = `{"id":"a","executions":[{"execution":1,"rounds":[{"learned":[{"kind":"ExecutionStarted","at":1,"name":"test","payload":1}%s]}]}]}`
	for name, events := range map[string]string{
		"a failure without an error":           `,{"kind":"ActivityFailed","at":2,"task":1}`,
		"a child's failure without an error":   `,{"kind":"OrchestrationFailed","at":2,"task":2}`,
		"a retry without an error":             `,{"kind":"AttemptFailed","at":2,"task":1}`,
		"a result without a value":             `,{"kind":"ActivityCompleted","at":2,"task":1}`,
		"a result of another kind":             `,{"kind":"TimerFired","at":2,"task":1,"payload":1}`,
		"a negative task":                      `,{"kind":"ActivityCompleted","at":2,"task":-1,"payload":1}`,
		"a result of an execution that is not": `,{"kind":"ActivityCompleted","at":2,"task":1,"origin":{"execution":9,"task":9}}`,
		"an event without a name":              `,{"kind":"EventRaised","at":2}`,
		"an end before anything was decided":   `,{"kind":"ExecutionTerminated","at":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("replay panics: %v", p)
				}
			}()
			err := Replay(o, fmt.Appendf(nil, begin, events))
			if !errors.Is(err, ErrCorrupt) && !isDeterminismError(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The same, when read from storage.
func TestAFailureWithoutAnErrorIsDamage(t *testing.T) {
	t.Parallel()
	for _, kind := range []eventKind{activityFailed, attemptFailed, childFailed, executionFailed, executionStopped} {
		text := fmt.Appendf(nil, `{"learned":[{"kind":%q,"at":1,"task":1}]}`, kind)
		if _, err := decodeRound(entityOf(encodingJSON, text)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A missing payload blob stalls the orchestrations that need it, until it is back.
func TestAMissingBlobStalls(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{damaged(step), other()}, []AnyActivity{step})
		start := startOf("a", strings.Repeat("x", spillFrom))
		mustRun(t, rt, start)
		raise(t, w, "a", 7, 0)
		name := blobName("a", blobOf(1, hashOf(start.Input)))
		noError(t, w.blobs.Delete(t.Context(), "orchestrations", name))
		start.Resume = true // the start of a new one would write the blob again
		stall{rt: rt, is: ErrCorrupt, says: []string{name, "restore"}}.check(t, w, "a", start)
		stall{rt: rt, is: blobs.ErrNotFound, says: []string{"ExecutionStarted"}}.check(t, w, "a", start)
		noError(t, w.blobs.Put(t.Context(), "orchestrations", name, start.Input))
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); string(out.Output) != fmt.Sprint(8+spillFrom) || l.count("step(0)") != 1 {
			t.Errorf("after the repair: %s %s %v", out.Status, out.Output, out.Failure)
		}
	})
}

func TestUnknownCodeStalls(t *testing.T) {
	t.Parallel()
	t.Run("orchestrator, at the start", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			old := w.signalling(t, nil, []AnyOrchestrator{other()}, []AnyActivity{step})
			stall{rt: old, is: ErrUnknownOrchestrator, says: []string{`"test"`, "Config.Orchestrators"}}.check(t, w, "a", startOf("a", 2))
			if len(w.rows(t, "a")) != 0 {
				t.Error("an unknown orchestrator was started")
			}
			if out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 2)); out.Status != Completed || out.Execution != 1 {
				t.Errorf("%+v", out)
			}
		})
	})
	t.Run("orchestrator, at a signal", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			rt := w.signalling(t, nil, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
			mustRun(t, rt, startOf("a", 1))
			raise(t, w, "a", 7, 0)
			old := w.signalling(t, nil, []AnyOrchestrator{other()}, []AnyActivity{step})
			stall{rt: old, is: ErrUnknownOrchestrator, says: []string{`"test"`, "Config.Orchestrators"}}.check(t, w, "a", startOf("a", 1))
			w.attend(t, rt, time.Hour)
			if out := mustGet(t, rt, "a"); string(out.Output) != "8" {
				t.Errorf("%+v", out)
			}
		})
	})
	t.Run("activity", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step, unknown := l.step("step"), l.step("unknown")
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				if _, err := step.Call(ctx, n).Await(); err != nil {
					return 0, err
				}
				if _, err := Event[int](ctx, "number").Await(); err != nil {
					return 0, err
				}
				return unknown.Call(ctx, n).Await()
			})
			old := w.signalling(t, nil, []AnyOrchestrator{o, other()}, []AnyActivity{step})
			mustRun(t, old, startOf("a", 1))
			raise(t, w, "a", 7, 0)
			signal, m, _ := w.receive(t, time.Hour)
			// The round that calls the activity is the last that can be committed, before it stalls.
			rounds := len(w.stored(t, "a")[0].rounds)
			if out, err := old.Deliver(t.Context(), signal); err != nil || out.Status != Stalled {
				t.Errorf("%s %v", out.Status, err)
			}
			wants(t, "rounds", len(w.stored(t, "a")[0].rounds), rounds+2)
			noError(t, errorOf(w.queues.Renew(t.Context(), signalQueue, m.ID, m.PopReceipt, 0)))
			stall{rt: old, is: ErrUnknownActivity, says: []string{`"unknown"`, "Config.Activities"}}.check(t, w, "a", startOf("a", 1))
			w.attend(t, w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step, unknown}), time.Hour)
			if out := mustGet(t, old, "a"); string(out.Output) != "2" || l.count("step(1)") != 1 || l.count("unknown(1)") != 1 {
				t.Errorf("%s %s, calls %v", out.Status, out.Output, l.all())
			}
		})
	})
	t.Run("sub-orchestrator", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			child := NewOrchestrator("child", func(_ *Context, n int) (int, error) { return n + 1, nil })
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return child.Call(ctx, n).Await() })
			old := w.signalling(t, nil, []AnyOrchestrator{o, other()}, nil)
			if _, err := old.Run(t.Context(), startOf("a", 1)); !errors.Is(err, ErrUnknownOrchestrator) {
				t.Errorf("%v", err)
			}
			stall{rt: old, is: ErrUnknownOrchestrator, says: []string{`"child"`, "Config.Orchestrators"}}.check(t, w, "a", startOf("a", 1))
			if out := mustRun(t, w.signalling(t, nil, []AnyOrchestrator{o, child}, nil), startOf("a", 1)); string(out.Output) != "2" || out.Execution != 1 {
				t.Errorf("%+v", out)
			}
		})
	})
}

// A call that cannot be made does not discard the work of other calls of its round: their results are kept.
func TestAStallKeepsWhatOthersHaveDone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		unknown := l.step("unknown")
		good := NewActivity("good", func(_ context.Context, n int) (int, error) {
			time.Sleep(time.Second)
			l.add("good")
			return n, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) ([]int, error) {
			return All(good.Call(ctx, n), unknown.Call(ctx, n))
		})
		for range 3 {
			if _, err := w.process(t, nil, o, good).Run(t.Context(), startOf("a", 1)); !errors.Is(err, ErrUnknownActivity) {
				t.Errorf("%v", err)
			}
		}
		out := mustRun(t, w.process(t, nil, o, good, unknown), startOf("a", 1))
		if out.Status != Completed || l.count("good") != 1 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
	})
}
