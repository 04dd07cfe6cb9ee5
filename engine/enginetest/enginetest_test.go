package enginetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	queue   = "backup-queue"
	message = `{"correlationId": "c1", "input": "shop"}`
)

// backup waits for an hour, dumps a database and publishes an event. Work does the dump.
func backup(work func(database string) error) func(enginetest.Stores) []engine.Definition {
	dump := orchestrator.NewActivity("dump", func(_ context.Context, database string) (string, error) {
		return database + ".dump", work(database)
	})
	run := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		if err := ctx.Sleep(time.Hour); err != nil {
			return "", err
		}
		file, err := dump.Call(ctx, r.Input).Await()
		if err == nil {
			err = ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "dumped", Key: "dump/" + r.Input, Payload: []byte(`{}`)})
		}
		return file, err
	}
	return func(enginetest.Stores) []engine.Definition {
		return []engine.Definition{{Name: "backup", Queue: queue, Orchestrator: engine.Orchestrate("backup", run),
			Operations: []orchestrator.AnyActivity{dump}}}
	}
}

func succeeds(string) error { return nil }

// statuses returns the statuses of the run's entries.
func statuses(w *enginetest.World) (all []engine.Status) {
	for _, e := range w.History("backup", "c1") {
		all = append(all, e.Status)
	}
	return all
}

// An engine's test in a bubble of virtual time: a message, an hour that takes no time, and the history. Here it is a
// plain function; in a test file it is a Test function.
func Example() {
	_ = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)})
			w.Send("backup-queue", `{"correlationId": "c1", "input": "shop"}`)
			w.Run()
			if got := w.History("backup", "c1"); len(got) != 1 || got[0].RunStatus != engine.StatusSucceeded {
				t.Error(got)
			}
		})
	}
}

// With a fault at any storage call, the work is done and its event published once. Here it is a plain function; in a
// test file it is a Test function.
func ExampleFailEverywhere() {
	_ = func(t *testing.T) {
		enginetest.FailEverywhere(t, nil, func(t *testing.T, plan *enginetest.Plan) {
			w := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)})
			w.Send("backup-queue", `{"correlationId": "c1", "input": "shop"}`)
			w.Restart(plan)
			w.Run()
			if out := w.Outcome("backup-c1"); string(out.Output) != `"shop.dump"` || len(w.Published()) != 1 {
				t.Errorf("%s, %d events", out.Output, len(w.Published()))
			}
		})
	}
}

// The host delivers due messages; Pass and Run advance the time.
func TestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, began := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)}), time.Now()
		w.SendIn(queue, message, time.Minute)
		if n := w.Deliver(); n != 0 {
			t.Errorf("%d deliveries before the message is due", n)
		}
		w.Pass(time.Minute)
		if out := w.Outcome("backup-c1"); out.Status != orchestrator.Running || time.Since(began) != time.Minute {
			t.Errorf("after %v it is %s", time.Since(began), out.Status)
		}
		w.Run()
		took := time.Since(began)
		if out := w.Outcome("backup-c1"); out.Status != orchestrator.Completed || took < time.Hour || took > 62*time.Minute {
			t.Errorf("after %v it is %s", took, out.Status)
		}
		if got := w.Published(); len(got) != 1 || got[0].Type != "dumped" {
			t.Errorf("published %+v", got)
		}
	})
}

// A failed message is redelivered, and dead-lettered in the end.
func TestAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New(t, enginetest.Config{Engines: backup(func(string) error { return errors.New("jammed") })})
		w.Send(queue, message)
		w.Run()
		dead := w.DeadLetters("backup")
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonAttemptsExhausted ||
			string(dead[0].OriginalMessage) != message || len(statuses(w)) != 4 {
			t.Errorf("%+v, history %v", dead, statuses(w))
		}
	})
}

// The function of the poison queue receives a message that the host abandons.
func TestPoison(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, began := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)}), time.Now()
		w.Restart(&enginetest.Plan{Refuse: func(c enginetest.Call) bool {
			return c.Service == "tables" && time.Since(began) < 5*time.Minute
		}})
		w.Send(queue, message)
		w.Run()
		dead := w.DeadLetters("backup")
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonPoison || dead[0].DequeueCount != enginetest.HostMaxDequeueCount {
			t.Errorf("%+v", dead)
		}
	})
}

// The host renews a message for as long as the process handles it.
func TestRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, handled := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)}), 0
		w.Send(queue, message)
		if !w.DeliverTo(queue, func(context.Context, engine.Delivery) error {
			handled++
			time.Sleep(time.Hour)
			return nil
		}) {
			t.Error("no message is due")
		}
		if w.Run(); handled != 1 || len(statuses(w)) != 0 {
			t.Errorf("%d deliveries, history %v", handled, statuses(w))
		}
	})
}

// A receiver that is down gets its events when it is back.
func TestOutbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := tables.NewMemory()
		o := enginetest.NewOutbox(t, store, nil)
		o.Down, o.Permanent = true, true
		w := enginetest.New(t, enginetest.Config{Tables: store, Publish: o.Publish, Engines: backup(succeeds)})
		w.Send(queue, message)
		w.Run()
		check := func(want outbox.Status) {
			t.Helper()
			if got := o.Events(); len(got) != 1 || got[0].Status != want || got[0].EventType != "dumped" {
				t.Errorf("%+v, want one that is %s", got, want)
			}
		}
		check(outbox.StatusDead)
		o.Recover()
		check(outbox.StatusProcessed)
	})
}

// After a crash another process continues, with the current code and settings.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, fault := range []enginetest.Fault{enginetest.CrashBefore, enginetest.CrashAfter} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)})
				first := w.Restart(&enginetest.Plan{At: 2, Fault: fault})
				w.Send(queue, message)
				w.Run()
				if diff := cmp.Diff([]engine.Status{engine.StatusSucceeded}, statuses(w)); diff != "" || w.Process() == first {
					t.Errorf("another process: %t, history (-want +got):\n%s", w.Process() != first, diff)
				}
				d := engine.Delivery{Queue: queue, ID: "m", Body: []byte(message), DequeueCount: 1}
				if err := first.Handle(t.Context(), d); !errors.Is(err, faults.ErrCrashed) {
					t.Errorf("the process that crashed answers %v", err)
				}
			})
		})
	}
}

func TestCheckInputSchema(t *testing.T) {
	t.Parallel()
	type input struct {
		Name string `json:"name"`
		Slot string `json:"slot"`
	}
	for schema, want := range map[string]bool{
		`{"properties":{"name":{},"slot":{}}}`:            true,
		`{"properties":{"name":{}}}`:                      false,
		`{"properties":{"name":{},"slot":{},"other":{}}}`: false,
	} {
		r := &recorder{TB: t}
		if enginetest.CheckInputSchema[input](r, schema); r.failed == want {
			t.Errorf("%s: failed %t", schema, r.failed)
		}
	}
}

// recorder is a test that records its failure.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

// With a fault at any storage call, the run succeeds once.
func TestFailEverywhere(t *testing.T) {
	t.Parallel()
	enginetest.FailEverywhere(t, nil, func(t *testing.T, plan *enginetest.Plan) {
		w := enginetest.New(t, enginetest.Config{Engines: backup(succeeds)})
		w.Send(queue, message)
		w.Restart(plan)
		w.Run()
		out, succeeded := w.Outcome("backup-c1"), slices.Contains(statuses(w), engine.StatusSucceeded)
		if string(out.Output) != `"shop.dump"` || len(w.Published()) != 1 || !succeeded {
			t.Errorf("%s, %d events, history %v", out.Output, len(w.Published()), statuses(w))
		}
	})
}
