package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// scenario is an orchestration that must survive all faults.
type scenario struct {
	make func(l *ledger) ([]AnyOrchestrator, []AnyActivity)
	// status is its end; "" is Completed.
	status Status
	// output is its result as JSON or, when it does not complete, the message of its failure.
	output string
	// outside is the actions of others, before it starts.
	outside func(t *testing.T, w *world)
	// operate is the requests of its operators while it runs, in this order.
	operate []request
	// retries makes its message repeat after a failure, as Start.WillRetry.
	retries bool
	// children is the end of all its calls; "" is any end.
	children Status
	// others are the other orchestrations that have to complete, by the suffix of their ids, with their results.
	others map[string]string
	// most bounds how often an activity may run when one process dies; the default is 2.
	most map[string]int
	// narrow limits a round to one event or decision.
	narrow bool
}

// end returns the expected status.
func (s scenario) end() Status { return cmp.Or(s.status, Completed) }

// start is the message that starts the scenario under an id.
func (s scenario) start(id string) Start {
	start := startOf(id, 1)
	start.WillRetry = s.retries
	return start
}

// scenarios end well, without operators.
func scenarios() map[string]scenario {
	return map[string]scenario{
		"sequence and fan-out":   {make: mixed, output: `"[3 100 4] 5 true"`, most: map[string]int{"flaky": 4}},
		"timers":                 {make: withTimers, output: `"2 1 true"`},
		"sub-orchestrations":     {make: withChildren, output: `"[11 12] failed: child trouble"`, most: map[string]int{"trouble": 4}},
		"fibers":                 {make: withCoroutines, output: `"[2 12 22]"`},
		"continue as new":        {make: withGenerations, output: `"1 2 3 4"`},
		"recorded values":        {make: withValues, output: `"same"`},
		"events":                 {make: withEvents, output: `"1 2 3 none"`, outside: raiseEvents},
		"events and generations": {make: withEventLoop, output: `"1 2 3"`, outside: raiseEvents},
		"local activities":       {make: withLocals, output: `"6 [8 11] 9"`},
		"local, divided":         {make: withLocals, output: `"6 [8 11] 9"`, narrow: true},
		"a divided turn":         {make: mixed, output: `"[3 100 4] 5 true"`, most: map[string]int{"flaky": 4}, narrow: true},
		"a child that waits":     {make: withWaitingChild, output: `"3"`, outside: raiseForChild},
	}
}

func mixed(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	flaky := NewActivity("flaky", func(ctx context.Context, n int) (int, error) {
		l.add("flaky")
		if Info(ctx).Attempt == 1 {
			return 0, errors.New("once")
		}
		return n, nil
	}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: 1}))
	doomed := NewActivity("doomed", func(context.Context, int) (int, error) {
		l.add("doomed")
		return 0, Permanent(errors.New("never"))
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		a, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		fan, err := All(step.Call(ctx, a), flaky.Call(ctx, 100), step.Call(ctx, a+1))
		if err != nil {
			return "", err
		}
		_, never := doomed.Call(ctx, fan[2]).Await()
		b, err := step.Call(ctx, fan[2]).Await()
		return fmt.Sprint(fan, b, never != nil), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, flaky, doomed}
}

// withLocals calls local activities before, next to and after others.
func withLocals(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step, local := l.step("step"), l.step("local", WithLocal())
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		a := n
		for i := range 5 {
			next, err := local.Call(ctx, a).Await()
			if err != nil {
				return "", err
			}
			if a = next; i == 2 {
				if err := ctx.Sleep(time.Hour); err != nil {
					return "", err
				}
			}
		}
		fan, err := All(local.Call(ctx, a+1), step.Call(ctx, a+4))
		if err != nil {
			return "", err
		}
		b, err := local.Call(ctx, fan[0]).Await()
		return fmt.Sprint(a, fan, b), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, local}
}

// withTimers waits for a timer, and twice for the first of an activity and a timer.
func withTimers(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	slow := NewActivity("slow", func(ctx context.Context, d time.Duration) (int, error) {
		l.add(fmt.Sprint("slow", d))
		select {
		case <-time.After(d):
			return 2, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		begin := ctx.Now()
		_ = ctx.Sleep(48 * time.Hour)
		fast := slow.Call(ctx, time.Second)
		Any(ctx, fast, Timer(ctx, time.Hour))
		v, err := fast.Await()
		if err != nil {
			return "", err
		}
		first := Any(ctx, slow.Call(ctx, time.Hour), Timer(ctx, time.Second))
		return fmt.Sprint(v, " ", first, " ", ctx.Now().Sub(begin) >= 48*time.Hour+time.Second), nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{slow}
}

func withChildren(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	trouble := NewActivity("trouble", func(context.Context, int) (int, error) {
		l.add("trouble")
		return 0, errors.New("child trouble")
	})
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		_ = ctx.Sleep(time.Hour)
		return step.Call(ctx, n).Await()
	})
	sad := NewOrchestrator("sad", func(ctx *Context, n int) (int, error) { return trouble.Call(ctx, n).Await() })
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		sums, err := All(child.Call(ctx, 10), child.Call(ctx, 11))
		if err != nil {
			return "", err
		}
		_, err = sad.Call(ctx, 1, WithRetry(Retry{MaxAttempts: 2})).Await()
		failed, ok := errors.AsType[*OrchestrationError](err)
		if !ok || failed.Orchestrator != "sad" {
			return "", fmt.Errorf("sub-orchestration gave %w", err)
		}
		var cause *Failure
		errors.As(err, &cause)
		return fmt.Sprint(sums, " failed: ", cause.Message[len(cause.Message)-len("child trouble"):]), nil
	})
	return []AnyOrchestrator{o, child, sad}, []AnyActivity{step, trouble}
}

func withCoroutines(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		var branches []*Future[int]
		for i := range 3 {
			branches = append(branches, Go(ctx, func(ctx *Context) (int, error) {
				v, err := step.Call(ctx, 10*i).Await()
				if err != nil {
					return 0, err
				}
				_ = ctx.Sleep(time.Duration(3-i) * time.Second)
				return step.Call(ctx, v).Await()
			}))
		}
		results, err := All(branches...)
		return fmt.Sprint(results), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

func withGenerations(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	type state struct {
		N    int
		Said string
	}
	o := NewOrchestrator("test", func(ctx *Context, raw any) (string, error) {
		var s state
		if m, ok := raw.(map[string]any); ok {
			s.N, s.Said = int(m["N"].(float64)), m["Said"].(string)
		}
		v, err := step.Call(ctx, s.N).Await()
		if err != nil {
			return "", err
		}
		if s.Said += fmt.Sprint(" ", v); v < 4 {
			return "", ContinueAsNew(state{v, s.Said})
		}
		return s.Said[1:], nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

// withValues passes values that are not deterministic to activities, before and after a step, and compares them later.
func withValues(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	echo := NewActivity("echo", func(_ context.Context, s string) (string, error) { return s, nil })
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		said := ""
		for i := range 3 {
			drawn, err := SideEffect(ctx, "draw", func() int { return l.add("draw") })
			if err != nil {
				return "", err
			}
			now := fmt.Sprint(ctx.NewUUID(), ctx.Rand().IntN(1e6), drawn, ctx.Patched("p"), ctx.Now())
			first, err := echo.Call(ctx, now).Await()
			if err != nil {
				return "", err
			}
			if _, err := step.Call(ctx, i).Await(); err != nil {
				return "", err
			}
			if first != now || said == now {
				return "", fmt.Errorf("%s became %s", first, now)
			}
			said = now
		}
		return "same", nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, echo}
}

// withEvents reads three events, which come at different times, and times out on a fourth.
func withEvents(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		said := ""
		for range 4 {
			e := Event[int](ctx, "Number")
			if Any(ctx, e, Timer(ctx, 100*time.Hour)) == 1 {
				return said + "none", nil
			}
			v, err := e.Await()
			if err != nil {
				return "", err
			}
			if _, err := step.Call(ctx, v).Await(); err != nil {
				return "", err
			}
			said += fmt.Sprint(v, " ")
		}
		return said, nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

func withEventLoop(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, raw any) (string, error) {
		said, _ := raw.(string)
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return "", err
		}
		if _, err := step.Call(ctx, v).Await(); err != nil {
			return "", err
		}
		if said += fmt.Sprint(" ", v); v < 3 {
			return "", ContinueAsNew(said)
		}
		return said[1:], nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

// raiseEvents raises three events, one after the other, the first of them early, and each of them twice.
func raiseEvents(t *testing.T, w *world) {
	t.Helper()
	raise(t, w, "a", 1, 0)
	raise(t, w, "a", 1, time.Minute)
	raise(t, w, "a", 2, time.Hour)
	raise(t, w, "a", 3, 2*time.Hour)
	raise(t, w, "a", 2, 3*time.Hour)
}

func raise(t *testing.T, w *world, id string, n int, delay time.Duration) {
	t.Helper()
	body, err := marshal(Signal{SignalID: fmt.Sprint("event", n), InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal,
		Payload: Payload{Event: "number", Data: fmt.Append(nil, n)}})
	if err == nil {
		_, err = w.queues.Send(t.Context(), signalQueue, body, delay)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withWaitingChild waits for a child that waits for an event, so that neither of them has anything to do.
func withWaitingChild(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) {
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return 0, err
		}
		_ = ctx.Sleep(time.Hour)
		return step.Call(ctx, v).Await()
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		v, err := child.Call(ctx, 7).Await()
		return fmt.Sprint(v), err
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{step}
}

func raiseForChild(t *testing.T, w *world) {
	t.Helper()
	raise(t, w, fmt.Sprintf("a:1-child-%s-1", hashOf([]byte("7"))[:16]), 2, time.Hour)
}
