package drain_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// slowApp is an app whose engine has a quick activity, one that takes an hour unless it is told to stop, and one at the end. No
// activity may be tried twice.
type slowApp struct {
	begun, running, ended atomic.Int64
	quick                 atomic.Bool // an hour is nothing
	stubborn              bool        // it does not look at its context
}

func (s *slowApp) app() handler.App {
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		once := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 1})
		first := orchestrator.NewActivity("first", func(context.Context, int) (int, error) { return 1, nil }, once)
		slow := orchestrator.NewActivity("slow", func(ctx context.Context, n int) (int, error) {
			s.begun.Add(1)
			s.running.Add(1)
			defer s.running.Add(-1)
			if s.quick.Load() {
				return n + 1, nil
			}
			stop := ctx.Done()
			if s.stubborn {
				stop = nil
			}
			select {
			case <-stop:
				return 0, ctx.Err()
			case <-time.After(time.Hour):
				return n + 1, nil
			}
		}, once)
		last := orchestrator.NewActivity("last", func(_ context.Context, n int) (int, error) { s.ended.Add(1); return n + 1, nil }, once)
		run := func(ctx *orchestrator.Context, r engine.Request[struct{ Slow bool }]) (n int, err error) {
			if !r.Input.Slow {
				n, err = first.Call(ctx, 0).Await()
			}
			if err == nil {
				n, err = slow.Call(ctx, n).Await()
			}
			if err == nil {
				n, err = last.Call(ctx, n).Await()
			}
			return n, err
		}
		return []engine.Definition{{Name: "slow", Queue: "slow-queue", Orchestrator: engine.Orchestrate("slow", run), Operations: []orchestrator.AnyActivity{first, slow, last},
			Schedules: []engine.Schedule{{Cron: "0 0 3 * * *", Messages: func(context.Context, time.Time) ([]engine.Message, error) {
				return []engine.Message{{CorrelationID: "scheduled", Input: []byte(`{"slow":true}`)}}, nil
			}}}}}, nil
	}}
}

// A drain of twenty minutes in the midst of work, with two processes, which are killed then: nothing runs once it is said so, no
// attempt of a message or of an activity is used up, and everything is done in the end, at once.
func TestAnAppIsDrained(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} { // the first round may be committed already, or not
		synctest.Test(t, func(t *testing.T) {
			var s slowApp
			one := handlertest.New(t, s.app(), nil)
			two := handlertest.NewWith(t, s.app(), nil, func(c *handler.Config) { c.Tables, c.Queues, c.Blobs = one.Tables, one.Queues, one.Blobs })
			two.Tables, two.Queues, two.Blobs = one.Tables, one.Queues, one.Blobs
			body := fmt.Sprintf(`{"correlationId": "c1", "input": {"slow": %v}}`, slow)
			one.Send("slow-queue", body)
			done := make(chan int)
			go func() { done <- one.Deliver() }()
			synctest.Wait()
			if n := s.running.Load(); n != 1 {
				t.Fatalf("%d run", n)
			}
			store := drain.Store{Tables: one.Tables}
			f, err := store.Begin(t.Context(), "ann", time.Hour)
			testenv.Check(t, err)
			time.Sleep(drain.Notice)
			<-done
			synctest.Wait()
			testenv.Diff(t, map[string]int{}, running(t, store, f), "")
			if n := s.running.Load(); n != 0 {
				t.Errorf("%d run", n)
			}

			// More comes meanwhile: messages, a schedule, a sweep.
			one.Send("slow-queue", `{"correlationId": "c2", "input": {"slow": true}}`)
			if two.Schedule("slow", "", time.Now()) != 1 || !two.Tick("orchestration-sweep-timer", time.Now()) {
				t.Error("a timer failed")
			}
			begun := s.begun.Load()
			for range 20 {
				one.Deliver()
				two.Deliver()
				time.Sleep(time.Minute)
			}
			if n := s.begun.Load(); n != begun {
				t.Errorf("%d activities began while the app was drained", n-begun)
			}

			// It goes on, and is drained again before anything of it has ended.
			testenv.Check(t, store.End(t.Context()))
			time.Sleep(time.Minute)
			go func() { done <- one.Deliver() }()
			synctest.Wait()
			if n := s.running.Load(); n != 1 {
				t.Errorf("%d run again", n)
			}
			testenv.Done(t)(store.Begin(t.Context(), "ann", time.Hour))
			<-done

			one.Restart(nil, func(*handler.Config) {})
			two.Restart(nil, func(c *handler.Config) { c.Tables, c.Queues, c.Blobs = one.Tables, one.Queues, one.Blobs })
			s.quick.Store(true)
			testenv.Check(t, store.End(t.Context()))
			time.Sleep(time.Minute)
			one.Deliver()
			two.Deliver()
			failed, succeeded := 0, map[string]bool{}
			for _, entry := range one.History("slow") {
				if entry.Status != engine.StatusSucceeded {
					failed++
					t.Errorf("%+v", entry)
				}
				succeeded[entry.CorrelationID] = true
			}
			testenv.Diff(t, map[string]bool{"c1": true, "c2": true, "scheduled": true}, succeeded, "")
			if letters := one.DeadLetters("slow"); len(letters) > 0 {
				t.Errorf("dead letters %+v", letters)
			}
			if n := s.ended.Load(); n != 3 {
				t.Errorf("%d runs have ended, want 3", n)
			}
		})
	}
}

// A process that is to end hands back what it has in hand, and another goes on with it at that moment: no attempt is used up. What it
// gets afterwards is there for the other one a second later.
func TestAProcessLeaves(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s slowApp
			one := handlertest.New(t, s.app(), nil)
			two := handlertest.NewWith(t, s.app(), nil, func(c *handler.Config) { c.Tables, c.Queues, c.Blobs = one.Tables, one.Queues, one.Blobs })
			two.Tables, two.Queues, two.Blobs = one.Tables, one.Queues, one.Blobs
			body := fmt.Sprintf(`{"correlationId": "c1", "input": {"slow": %v}}`, slow)
			one.Send("slow-queue", body)
			done := make(chan int)
			go func() { done <- one.Deliver() }()
			synctest.Wait()
			if n := s.running.Load(); n != 1 {
				t.Fatalf("%d run", n)
			}
			began := time.Now()
			go one.Leave()
			synctest.Wait()
			if n := s.running.Load(); n != 0 {
				t.Errorf("%d run in the one that leaves", n)
			}
			<-done // it came to its host at once, which still takes messages, and so it is away for a second
			if passed := time.Since(began); passed != 0 {
				t.Errorf("it took %v to hand back what ran", passed)
			}
			s.quick.Store(true)
			time.Sleep(time.Second)
			two.Deliver()
			if n := s.ended.Load(); n != 1 || s.begun.Load() != 2 {
				t.Errorf("%d have ended, %d began: the other process did not go on at once", n, s.begun.Load())
			}

			one.Send("slow-queue", `{"correlationId": "c2", "input": {"slow": true}}`)
			one.Deliver() // its host lives on, and takes it
			two.Deliver()
			if n := s.ended.Load(); n != 1 {
				t.Errorf("%d have ended", n)
			}
			time.Sleep(time.Second)
			two.Deliver()
			if n := s.ended.Load(); n != 2 {
				t.Errorf("%d have ended a second later", n)
			}
			for _, entry := range one.History("slow") {
				if entry.Status != engine.StatusSucceeded {
					t.Errorf("%+v", entry)
				}
			}
			if letters := one.DeadLetters("slow"); len(letters) > 0 {
				t.Errorf("dead letters %+v", letters)
			}
			if n, err := one.Queues.Length(t.Context(), "slow-queue"); err != nil || n != 0 {
				t.Errorf("%d messages are left, %v", n, err)
			}
		})
	}
}

// An activity that does not look at its context is left behind, and begins anew: it holds up no drain.
func TestAStubbornActivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slowApp{stubborn: true}
		host := handlertest.New(t, s.app(), nil)
		host.Send("slow-queue", `{"correlationId": "c1", "input": {"slow": true}}`)
		done := make(chan int)
		go func() { done <- host.Deliver() }()
		synctest.Wait()
		store := drain.Store{Tables: host.Tables}
		f, err := store.Begin(t.Context(), "ann", 5*time.Minute)
		testenv.Check(t, err)
		time.Sleep(drain.Notice)
		<-done
		synctest.Wait()
		if diff := cmp.Diff(map[string]int{}, running(t, store, f)); diff != "" || s.running.Load() != 1 {
			t.Errorf("%d run: %s", s.running.Load(), diff)
		}
		s.quick.Store(true)
		time.Sleep(10 * time.Minute) // it ends by itself
		host.Deliver()
		if n := s.begun.Load(); n != 2 || s.ended.Load() != 1 || len(host.DeadLetters("slow")) > 0 {
			t.Errorf("begun %d times, %d have ended", n, s.ended.Load())
		}
		for _, entry := range host.History("slow") {
			if entry.Status != engine.StatusSucceeded {
				t.Errorf("%+v", entry)
			}
		}
		time.Sleep(time.Hour) // the first one comes to its end
	})
}
