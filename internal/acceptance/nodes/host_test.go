package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// The behaviour of the Functions host with the settings of host.json.
const (
	hostLease         = 10 * time.Minute
	hostRenewal       = 5 * time.Minute
	hostBatch         = 16
	hostThreshold     = 8 // it fetches again when this few are in flight
	pollingFrom       = 100 * time.Millisecond
	pollingTo         = 10 * time.Second
	visibilityTimeout = 30 * time.Second
	budget            = 8 * time.Minute
	settleTimeout     = 30 * time.Second
)

const (
	startQueue    = "orchestration-starts"
	signalQueue   = "orchestration-signals"
	scheduleQueue = "orchestration-schedules"
	activityQueue = "orchestration-activities"
)

func hostQueues() []string {
	return []string{startQueue, signalQueue, scheduleQueue, activityQueue}
}

// poll is the host's listener of one queue.
func (m *machine) poll(queue string) {
	store := faults.Queues(receiving{m.storage.queues, m}, m.intercept)
	idle, settled, inHand := pollingFrom, make(chan struct{}, hostBatch+hostThreshold), 0
	for m.alive() {
		for inHand > hostThreshold {
			<-settled
			inHand--
		}
		messages, err := store.Receive(m.ctx, queue, hostBatch, hostLease)
		if idle = min(2*idle, pollingTo); err == nil && len(messages) > 0 {
			idle = pollingFrom
		}
		for _, message := range messages {
			inHand++
			m.work.Go(func() {
				m.hold(store, queue, message)
				settled <- struct{}{}
			})
		}
		timer := time.After(idle)
		for waiting := true; waiting; {
			select {
			case <-settled:
				inHand--
			case <-timer:
				waiting = false
			case <-m.ctx.Done():
				waiting = false
			}
		}
	}
}

// hold handles a message while the host renews its lease, and settles it.
func (m *machine) hold(store queues.Store, queue string, message queues.Message) {
	over, stopped := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	receipt := message.PopReceipt
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			case <-time.After(hostRenewal):
			}
			mu.Lock()
			if next, err := store.Renew(m.ctx, queue, message.ID, receipt, hostLease); err == nil {
				receipt = next
			}
			mu.Unlock()
		}
	}()
	ctx, cancel := context.WithTimeout(m.ctx, budget)
	err := m.handle(ctx, queue, message, queues.Decode(message.Text))
	cancel()
	close(over)
	<-stopped
	if m.hostLives && !m.alive() {
		_, _ = m.storage.queues.Renew(context.WithoutCancel(m.ctx), queue, message.ID, receipt, visibilityTimeout) // the handler is gone, the host lives
		return
	}
	if err == nil {
		_ = store.Delete(m.ctx, queue, message.ID, receipt) // another delivery may own it now
		return
	}
	_, _ = store.Renew(m.ctx, queue, message.ID, receipt, visibilityTimeout)
}

// errUnfinished requeues a message whose run has used up its time.
var errUnfinished = errors.New("the time ran out")

// handle is one invocation.
func (m *machine) handle(ctx context.Context, queue string, message queues.Message, body []byte) error {
	if queue == scheduleQueue && m.member != nil {
		if signOf(body) != "" {
			m.member.helps()
			defer m.member.helps()
		}
		if handled, err := m.member.Receive(ctx, body); handled || err != nil {
			m.tell("%s handled a sign of life: %v", m, err)
			return err
		}
	}
	subject, run, err := m.task(queue, message, body)
	if err != nil {
		m.t.Errorf("a message of %s: %v", queue, err)
		return nil
	}
	v := &invocation{queue: queue, message: message.ID, subject: subject, since: time.Now()}
	m.track(v, true)
	err = run(ctx)
	m.track(v, false)
	if err != nil {
		v.gaveUp = time.Now()
	}
	m.tell("%s handled %s of %s: %v", m, queue, subject, err)
	for _, wrong := range []error{orchestrator.ErrCorrupt, orchestrator.ErrSignal, orchestrator.ErrUnknownOrchestrator, orchestrator.ErrUnknownActivity, orchestrator.ErrConflict, orchestrator.ErrStalled} {
		if errors.Is(err, wrong) {
			m.t.Errorf("%s, %s of %s: %v", m, queue, subject, err)
		}
	}
	return err
}

func (m *machine) track(v *invocation, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		m.hand[v] = true
		return
	}
	delete(m.hand, v)
}

// task returns the orchestration of a message, and a function that handles it.
func (m *machine) task(queue string, message queues.Message, body []byte) (subject string, run func(context.Context) error, err error) {
	switch queue {
	case startQueue:
		var r request
		err = json.Unmarshal(body, &r)
		return r.ID, func(ctx context.Context) error { return m.begin(ctx, r) }, err
	case activityQueue:
		var batch struct {
			Orchestration string `json:"workflowInstanceId"`
		}
		err = json.Unmarshal(body, &batch)
		return batch.Orchestration, func(ctx context.Context) error {
			defer m.holdMessage(queue, message)()
			return m.runtime.RunActivities(ctx, body)
		}, err
	}
	signal, err := orchestrator.DecodeSignal(body)
	return signal.InstanceID, func(ctx context.Context) error {
		_, err := m.runtime.Deliver(ctx, signal)
		return err
	}, err
}

// begin handles a delivery of the message that starts an orchestration; the work is in flight until it is settled.
func (m *machine) begin(ctx context.Context, r request) error {
	defer m.holdOrchestration(r.ID)()
	out, err := m.runtime.Run(ctx, orchestrator.Start{ID: r.ID, Orchestrator: "plan", CorrelationID: r.ID, Input: mustJSON(plan{Steps: r.Steps})})
	if err == nil && !out.Ended() && !out.Woken {
		return errUnfinished
	}
	return err
}
