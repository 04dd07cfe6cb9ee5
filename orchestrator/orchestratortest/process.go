package orchestratortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// These values are a host's, for failed messages.
const (
	redelivery    = 30 * time.Second
	maxDeliveries = 5
)

// process is a runtime that can crash, with its invocations.
type process struct {
	world  *world
	plan   *faults.Plan
	rt     *orchestrator.Runtime
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	running int
	err     error // an error that ends the test
}

func (w *world) process(ctx context.Context, plan *faults.Plan) (*process, error) {
	p := &process{world: w, plan: plan}
	p.ctx, p.cancel = context.WithCancel(ctx)
	var err error
	p.rt, err = w.runtime(w.instrument(w.activities), p.intercept)
	return p, err
}

// intercept notifies the world after each storage call.
func (p *process) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	defer p.world.notify()
	return p.plan.Intercept(ctx, c, next)
}

// invoke handles a message: it calls run, and then acknowledge. After a failure that a redelivery can fix, it calls
// again.
func (p *process) invoke(run, acknowledge func() error, again func(delay time.Duration) error) {
	p.mu.Lock()
	p.running++
	p.mu.Unlock()
	p.work.Go(func() {
		err := run()
		if err == nil {
			call := faults.Call{Service: "queues", Operation: "Delete", Target: p.rt.SignalQueue()}
			err = p.intercept(p.ctx, call, func(context.Context) error { return acknowledge() })
		}
		switch {
		case p.plan.Crashed():
			err = again(0)
		case errors.Is(err, orchestrator.ErrNotFound), errors.Is(err, orchestrator.ErrElsewhere):
			err = again(redelivery)
		}
		p.mu.Lock()
		p.running--
		p.err = errors.Join(p.err, err)
		p.mu.Unlock()
		p.world.notify()
	})
}

// begin handles the message that starts the orchestration. over means that the attempt has ended, but its process may
// have died before finishing the rest.
func (p *process) begin(over bool) {
	p.invoke(func() error {
		if over {
			_, err := p.rt.Deliver(p.ctx, orchestrator.Signal{SignalID: "look", InstanceID: id, RuntimeProvider: "roundhouse", Type: orchestrator.InternalContinue})
			return err
		}
		out, err := p.rt.Run(p.ctx, p.world.start)
		if err == nil && !out.Ended() && !out.Woken && out.Status != orchestrator.Retrying {
			err = fmt.Errorf("orchestration %s: nothing drives it on: %w", out.ID, context.Cause(p.ctx))
		}
		return err
	}, func() error {
		p.world.message.acknowledged.Store(true) // of a Retrying run, it is requeued
		return nil
	}, func(delay time.Duration) error {
		if delay > 0 {
			return fmt.Errorf("start: %w", orchestrator.ErrElsewhere)
		}
		return nil // the next process restarts it
	})
}

// giveUp fails the orchestration after its last attempt.
func (p *process) giveUp() {
	p.invoke(func() error {
		return p.rt.GiveUp(p.ctx, id, id, errors.New("it was given up"))
	}, func() error { return nil }, func(time.Duration) error { return nil }) // the next process finds it Retrying
}

// deliver handles a signal, if one is visible.
func (p *process) deliver() (bool, error) {
	ctx, w, queue := context.WithoutCancel(p.ctx), p.world, p.rt.SignalQueue()
	messages, err := w.queues.Receive(ctx, queue, 1, queues.MaxDelay)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	msg := messages[0]
	remove := func() error { return w.queues.Delete(ctx, queue, msg.ID, msg.PopReceipt) }
	p.invoke(func() error {
		s, err := orchestrator.DecodeSignal(queues.Decode(msg.Text))
		if err == nil {
			_, err = p.rt.Deliver(p.ctx, s)
		}
		return err
	}, remove, func(delay time.Duration) error {
		if msg.DequeueCount >= maxDeliveries {
			w.log.Warn("a signal was given up", "signal", string(queues.Decode(msg.Text)))
			return remove()
		}
		return w.queues.redeliver(ctx, queue, msg, delay)
	})
	return true, nil
}

// state returns how many invocations are running, and the error that ends the test.
func (p *process) state() (running int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running, p.err
}

// stop ends the process and waits for its invocations.
func (p *process) stop() {
	p.cancel()
	p.work.Wait()
}
