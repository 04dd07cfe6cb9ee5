package nodes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/queues"
)

// nodesTable holds the rows of the nodes.
const nodesTable = "hostLocks"

// member is the part of a machine that announces that it lives. It replaces the node for the runtime, so that the
// simulation sees the work in flight.
type member struct {
	*nodes.Node
	of *machine

	mu       sync.Mutex
	calls    []time.Time // requests of the node
	renewals []time.Time // when storage carried out signs of life
	held     map[*invocation]bool
	work     []span      // when work was in flight
	takes    []time.Time // when it took over
}

// span is a time range; a zero end is open.
type span struct{ begin, end time.Time }

// enroll makes the node of a machine.
func (m *machine) enroll() *member {
	b := &member{of: m, held: map[*invocation]bool{}}
	var err error
	b.Node, err = nodes.New(nodes.Config{
		Tables: stamped{faults.Tables(observed{m.storage.tables, m.storage}, b.intercept), m}, Table: nodesTable,
		Queues: faults.Queues(m.storage.queues, b.intercept), Queue: scheduleQueue,
		Name: m.String(), Host: m.host, PID: m.life, Alive: m.lives(), Version: "simulated",
		TakeOver: m.takeOver, Now: m.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

// lives reports whether the process of a machine exists.
func (m *machine) lives() func(pid int) bool {
	return func(pid int) bool {
		m.storage.mu.Lock()
		defer m.storage.mu.Unlock()
		for _, other := range m.storage.machines {
			if other.life == pid {
				return other.alive()
			}
		}
		return false
	}
}

// intercept counts the requests of the node, and records the renewals of its sign of life.
func (b *member) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	if ctx.Value(sweeping{}) == nil {
		b.mu.Lock()
		b.calls = append(b.calls, time.Now())
		b.mu.Unlock()
	}
	err := b.of.intercept(ctx, c, func(ctx context.Context) error {
		err := next(ctx)
		if sign := c.Operation == "SendHidden" || c.Operation == "Update"; sign && err == nil {
			b.mu.Lock()
			b.renewals = append(b.renewals, time.Now())
			b.mu.Unlock()
		}
		return err
	})
	b.of.tell("%s asks %s %s: %v", b.of, c.Operation, c.Target, err)
	return err
}

// Hold records the work that the runtime starts.
func (b *member) Hold(orchestration string) (release func()) {
	return b.note(orchestration, b.Node.Hold(orchestration))
}

// note records work in flight.
func (b *member) note(subject string, release func()) func() {
	one := &invocation{subject: subject, since: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held) == 0 {
		b.work = append(b.work, span{begin: one.since})
	}
	b.held[one] = true
	return func() {
		release()
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.held, one); len(b.held) == 0 {
			b.work[len(b.work)-1].end = time.Now()
		}
	}
}

// helps records that it works for another node.
func (b *member) helps() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes = append(b.takes, time.Now())
}

func (m *machine) holdOrchestration(id string) (release func()) {
	if m.member == nil {
		return func() {}
	}
	return m.member.Hold(id)
}

func (m *machine) holdMessage(queue string, message queues.Message) (release func()) {
	if m.member == nil {
		return func() {}
	}
	return m.member.note("", m.member.HoldMessage(nodes.Message{Queue: queue, ID: message.ID, PopReceipt: message.PopReceipt}))
}

// takeOver is the takeover handler of a machine's node.
func (m *machine) takeOver(ctx context.Context, lost nodes.Lost, begun func(orchestrations int)) error {
	m.tell("%s takes over from %s: %+v", m, lost.Node, lost.Hand)
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	l := orchestrator.Lost{Node: lost.Node, Orchestrations: lost.Hand.Orchestrations, Since: lost.Hand.At, Begun: lost.Begun, KeepEnds: lost.HostLives}
	if lost.Hand.More {
		l.Since = lost.Hand.Since
	}
	return m.runtime.TakeOver(ctx, l, func(n int) {
		m.tell("%s has taken over %d from %s", m, n, lost.Node)
		begun(n)
	})
}
