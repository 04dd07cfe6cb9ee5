package orchestratortest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// id is the orchestration's id and correlation id.
const id = "test"

// world outlives a process: it holds the storage, and does the steps.
type world struct {
	start         orchestrator.Start
	orchestrators []orchestrator.AnyOrchestrator
	activities    []orchestrator.AnyActivity
	steps         []Step
	attempts      int
	failing       *failing
	limit         time.Duration

	log       *slog.Logger
	tables    *tables.Memory
	blobs     *blobs.Memory
	queues    notifyingQueue
	outside   *orchestrator.Runtime // reads and signals; it never crashes
	begin     time.Time
	changed   chan struct{} // receives when an action may be possible
	done      []bool        // the steps that are done
	raised    map[raisedEvent]int
	published *publications
	ledger    *ledger
	*watchdog
	message   *message
	sendStart func(after int) // delivers the start message
	recovery
}

// raisedEvent is the name of an event and the execution that got it.
type raisedEvent struct {
	orchestration string
	execution     int
	name          string // lower case
}

func newWorld(t *testing.T, w world) (*world, error) {
	w.tables, w.blobs = tables.NewMemory(), blobs.NewMemory()
	w.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	w.begin, w.changed = time.Now(), make(chan struct{}, 1)
	w.done, w.raised, w.published, w.ledger = make([]bool, len(w.steps)), map[raisedEvent]int{}, &publications{}, &ledger{}
	w.watchdog = &watchdog{}
	w.message, w.repeats, w.rewound = &message{}, make([]bool, len(w.steps)), map[string]bool{}
	w.queues = notifyingQueue{queues.NewMemory(), w.notify}
	var err error
	if w.outside, err = w.runtime(w.activities, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error { return next(ctx) }); err == nil {
		err = w.outside.Prepare(t.Context())
	}
	return &w, err
}

// runtime makes a runtime on the world's storage.
func (w *world) runtime(activities []orchestrator.AnyActivity, i faults.Interceptor) (*orchestrator.Runtime, error) {
	return orchestrator.New(orchestrator.Config{
		Tables: faults.Tables(w.tables, i), Blobs: faults.Blobs(w.blobs, i), Queues: faults.Queues(w.queues, i),
		ScheduleQueue: "orchestration-signals", // one queue is enough to be delivered from
		Orchestrators: w.orchestrators, Activities: activities, Node: "test", Log: w.log,
		Publish:             w.published.publish,
		MaxInlineActivities: math.MaxInt, // one process does everything
		Stalled: func(_ context.Context, out orchestrator.Outcome) error {
			return fmt.Errorf("%w: %w", orchestrator.ErrStalled, out.Failure)
		},
	})
}

// publications collects published events: each once, by tenant and key, as an outbox does.
type publications struct {
	mu     sync.Mutex
	events []orchestrator.Publication
}

func (n *publications) publish(_ context.Context, events []orchestrator.Publication) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range events {
		known := func(k orchestrator.Publication) bool { return k.TenantID == e.TenantID && k.Key == e.Key }
		if !slices.ContainsFunc(n.events, known) {
			n.events = append(n.events, e)
		}
	}
	return nil
}

func (n *publications) all() []orchestrator.Publication {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events)
}

// notify reports a change to the simulation.
func (w *world) notify() {
	w.beat()
	select {
	case w.changed <- struct{}{}:
	default: // already notified
	}
}

// notifyingQueue is a queue that notifies the world when a message becomes visible.
type notifyingQueue struct {
	*queues.Memory
	notify func()
}

// Send makes a message visible up to a second early. Queues round delays up to whole seconds, and an orchestration that
// is woken early waits for the rest, so timers fire when they are due and not a second later.
func (m notifyingQueue) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	delay = max(0, delay-time.Second).Round(time.Second)
	sent, err := m.Memory.Send(ctx, queue, body, delay)
	if err == nil {
		time.AfterFunc(delay, m.notify)
	}
	return sent, err
}

// redeliver makes a received message visible after the delay, a number of seconds.
func (m notifyingQueue) redeliver(ctx context.Context, queue string, msg queues.Message, delay time.Duration) error {
	_, err := m.Renew(ctx, queue, msg.ID, msg.PopReceipt, delay)
	if err == nil {
		time.AfterFunc(delay, m.notify)
	}
	return err
}

// tree returns the orchestration and its sub-orchestrations, each before those that it called, and then the detached
// orchestrations with theirs; none before the orchestration has started.
func (w *world) tree(ctx context.Context) ([]orchestrator.Outcome, error) {
	seen := map[string]bool{}
	all, err := w.subtree(ctx, id, seen)
	next := ""
	for more := err == nil && len(all) > 0; more; more = next != "" {
		var found []orchestrator.Summary
		if found, next, err = w.outside.List(ctx, orchestrator.Filter{TopLevel: true}, 1000, next); err != nil {
			return nil, err
		}
		for _, s := range found {
			below, err := w.subtree(ctx, s.ID, seen)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		}
	}
	return all, err
}

func (w *world) subtree(ctx context.Context, id string, seen map[string]bool) ([]orchestrator.Outcome, error) {
	out, err := w.outside.Get(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) || seen[id] {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen[id] = true
	all := []orchestrator.Outcome{out}
	for _, x := range executions(out) {
		for _, c := range x.Calls {
			if c.Kind != orchestrator.OrchestrationCall {
				continue
			}
			below, err := w.subtree(ctx, c.Child, seen)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		}
	}
	return all, nil
}

// executions returns all executions of an orchestration, oldest first.
func executions(out orchestrator.Outcome) []orchestrator.Outcome {
	return append(out.Earlier[:len(out.Earlier):len(out.Earlier)], out)
}

// calls returns the calls of an orchestration, each sub-orchestration followed by its own calls.
func (w *world) calls(ctx context.Context, out orchestrator.Outcome, seen map[string]bool) ([]orchestrator.Call, error) {
	var all []orchestrator.Call
	for _, x := range executions(out) {
		for _, c := range x.Calls {
			all = append(all, c)
			if c.Kind != orchestrator.OrchestrationCall || seen[c.Child] {
				continue
			}
			seen[c.Child] = true
			child, err := w.outside.Get(ctx, c.Child)
			if errors.Is(err, orchestrator.ErrNotFound) {
				continue // the caller ended before its start
			}
			if err != nil {
				return nil, err
			}
			below, err := w.calls(ctx, child, seen)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		}
	}
	return all, nil
}

// waits reports whether an orchestration waits for an event: it has asked for more events than it got. An execution's
// unread events go to the next one; an attempt after a failure gets all of them again.
func (w *world) waits(out orchestrator.Outcome, event string) bool {
	if out.Ended() {
		return false
	}
	unread := 0
	for _, x := range executions(out) {
		unread += w.raised[raisedEvent{out.ID, x.Execution, strings.ToLower(event)}]
		asked := 0
		for _, c := range x.Calls {
			if c.Kind == orchestrator.EventCall && strings.EqualFold(c.Name, event) {
				asked++
			}
		}
		switch {
		case x.Execution == out.Execution:
			return asked > unread
		case x.Status == orchestrator.Running: // it continued as new
			unread = max(0, unread-asked)
		}
	}
	return false
}

// waitsFor describes the waits of the orchestrations that have not ended.
func (w *world) waitsFor(ctx context.Context) string {
	all, err := w.tree(ctx)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, out := range all {
		if out.Ended() {
			continue
		}
		fmt.Fprintf(&text, "\n\t%s (%s) is %s", out.Orchestrator, out.ID, out.Status)
		for _, c := range out.Calls {
			if c.Kind == orchestrator.EventCall && w.waits(out, c.Name) || c.Kind != orchestrator.EventCall && c.EndedAt.IsZero() {
				fmt.Fprintf(&text, "\n\t\tand waits for %s %s %s", c.Kind, c.Name, c.Input)
			}
		}
	}
	return text.String()
}
