package drain_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// slowApp is an app whose engine has a quick activity, one that takes an hour unless it is canceled, and one at the
// end. Activities have one attempt.
type slowApp struct {
	begun, running, ended atomic.Int64
	quick                 atomic.Bool // the hour takes no time
	stubborn              bool        // it ignores its context
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
			Intakes: []engine.Intake{{Function: "slow-intake", Route: "slow"}},
			Schedules: []engine.Schedule{{Cron: "0 0 3 * * *", Messages: func(context.Context, time.Time) ([]engine.Message, error) {
				return []engine.Message{{CorrelationID: "scheduled", Input: []byte(`{"slow":true}`)}}, nil
			}}}}}, nil
	}}
}

// two returns two processes of the app over the same stores. The first runs its slow activity, and done receives the
// number of its deliveries.
func (s *slowApp) two(t *testing.T, slow bool) (one, two *handlertest.Host, done chan int) {
	t.Helper()
	one = handlertest.New(t, s.app(), nil)
	two = handlertest.NewWith(t, s.app(), nil, func(c *handler.Config) { c.Tables, c.Queues, c.Blobs = one.Tables, one.Queues, one.Blobs })
	two.Tables, two.Queues, two.Blobs = one.Tables, one.Queues, one.Blobs
	one.Send("slow-queue", fmt.Sprintf(`{"correlationId": "c1", "input": {"slow": %v}}`, slow))
	done = make(chan int)
	go func() { done <- one.Deliver() }()
	synctest.Wait()
	s.counts(t, 1, 1, 0)
	return one, two, done
}

// counts checks the numbers of running and started slow activities, and of ended runs.
func (s *slowApp) counts(t *testing.T, running, begun, ended int64) {
	t.Helper()
	testenv.Equal(t, "running, begun, ended", [3]int64{running, begun, ended}, [3]int64{s.running.Load(), s.begun.Load(), s.ended.Load()})
}

// succeeded checks that these runs succeeded, and that no attempt of a message or of an activity was used up.
func succeeded(t *testing.T, h *handlertest.Host, runs ...string) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, run := range runs {
		want[run] = true
	}
	for _, entry := range h.History("slow") {
		got[entry.CorrelationID] = true
		testenv.Equal(t, fmt.Sprintf("%+v", entry), engine.StatusSucceeded, entry.Status)
	}
	testenv.Equal(t, "runs", want, got)
	if letters := h.DeadLetters("slow"); len(letters) > 0 {
		t.Errorf("dead letters %+v", letters)
	}
}

// A drain of twenty minutes during work, after which both processes are killed. Nothing runs when storage reports so,
// no attempt of a message or of an activity is used up, and all work continues immediately and ends.
func TestAnAppIsDrained(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} { // the first round may be committed already, or not
		synctest.Test(t, func(t *testing.T) {
			var s slowApp
			one, two, done := s.two(t, slow)
			store := drain.Store{Tables: one.Tables}
			f, err := store.Begin(t.Context(), "ann", time.Hour)
			testenv.OK(t, err)
			time.Sleep(drain.Notice)
			<-done
			synctest.Wait()
			testenv.Equal(t, "reported as running", map[string]int{}, running(t, store, f))
			s.counts(t, 0, 1, 0)

			// More work arrives meanwhile: messages, a schedule, a sweep.
			one.Send("slow-queue", `{"correlationId": "c2", "input": {"slow": true}}`)
			if two.Schedule("slow", "", time.Now()) != 1 || !two.Tick("orchestration-sweep-timer", time.Now()) {
				t.Error("a timer failed")
			}
			for range 20 {
				one.Deliver()
				two.Deliver()
				time.Sleep(time.Minute)
			}
			s.counts(t, 0, 1, 0)

			// It continues, and is drained again before any of it has ended.
			testenv.OK(t, store.End(t.Context()))
			time.Sleep(time.Minute)
			go func() { done <- one.Deliver() }()
			synctest.Wait()
			testenv.Equal(t, "what runs again", 1, s.running.Load())
			testenv.Must(store.Begin(t.Context(), "ann", time.Hour))(t)
			<-done

			one.Restart(nil, func(*handler.Config) {})
			two.Restart(nil, func(c *handler.Config) { c.Tables, c.Queues, c.Blobs = one.Tables, one.Queues, one.Blobs })
			s.quick.Store(true)
			testenv.OK(t, store.End(t.Context()))
			time.Sleep(time.Minute)
			one.Deliver()
			two.Deliver()
			succeeded(t, one, "c1", "c2", "scheduled")
			testenv.Equal(t, "runs that have ended", 3, s.ended.Load())
		})
	}
}

// A process that ends hands back its work in progress, and another continues it immediately: no attempt is used up.
// Later messages reach the other one a second later.
func TestAProcessLeaves(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s slowApp
			one, two, done := s.two(t, slow)
			began := time.Now()
			go one.Leave()
			synctest.Wait()
			s.counts(t, 0, 1, 0)
			<-done // its host received it immediately, and so it is delayed for a second
			testenv.Equal(t, "how long it took to hand back what ran", 0, time.Since(began))
			s.quick.Store(true)
			time.Sleep(time.Second)
			two.Deliver()
			s.counts(t, 0, 2, 1)

			one.Send("slow-queue", `{"correlationId": "c2", "input": {"slow": true}}`)
			one.Deliver() // its host is still alive, and receives it
			two.Deliver()
			s.counts(t, 0, 2, 1)
			time.Sleep(time.Second)
			two.Deliver()
			s.counts(t, 0, 3, 2)
			succeeded(t, one, "c1", "c2")
			if n, err := one.Queues.Length(t.Context(), "slow-queue"); err != nil || n != 0 {
				t.Errorf("%d messages are left, %v", n, err)
			}
		})
	}
}

// A stopping process, and a drained app, requeue messages that they handle directly, without using up an attempt.
func TestTakenAtOnceAndGivenBack(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"it ends": 0, "it is drained": time.Minute} {
		testenv.Bubble(t, name, func(t *testing.T) {
			var s slowApp
			h := handlertest.New(t, s.app(), map[string]string{"ROUNDHOUSE_DIRECT": "64"})
			if status, answer := h.Do(http.MethodPost, "/api/slow", `{"correlationId": "c1", "input": {"slow": true}}`); status != http.StatusAccepted {
				t.Fatal(status, answer)
			}
			synctest.Wait()
			s.counts(t, 1, 1, 0)
			if away == 0 {
				h.Leave()
			} else {
				testenv.Must(drain.Store{Tables: h.Tables}.Begin(t.Context(), "ann", 30*time.Second))(t)
			}
			time.Sleep(drain.Notice)
			synctest.Wait()
			s.counts(t, 0, 1, 0)
			h.Restart(nil, func(*handler.Config) {})
			s.quick.Store(true)
			if time.Sleep(away); h.Deliver() == 0 {
				t.Errorf("nothing is there after %v", away)
			}
			s.counts(t, 0, 2, 1)
			succeeded(t, h, "c1")
		})
	}
}

// An activity that ignores its context is left behind, and starts over: it does not block a drain.
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
		testenv.OK(t, err)
		time.Sleep(drain.Notice)
		<-done
		synctest.Wait()
		testenv.Equal(t, "reported as running", map[string]int{}, running(t, store, f))
		s.counts(t, 1, 1, 0)
		s.quick.Store(true)
		time.Sleep(10 * time.Minute) // it ends by itself
		host.Deliver()
		s.counts(t, 1, 2, 1)
		succeeded(t, host, "c1")
		time.Sleep(time.Hour) // the first one ends
	})
}
