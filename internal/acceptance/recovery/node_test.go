package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// nodeEnv makes a process of this test binary a node; it holds a nodeConfig as JSON.
const nodeEnv = "ROUNDHOUSE_TEST_NODE"

// The durations of a node are those of the handler and of the host's settings, shortened.
const (
	visibility = 5 * time.Second        // the host's lease of a message, 10 min
	retryAfter = time.Second            // visibilityTimeout, 30 s
	elsewhere  = time.Second            // Config.ElsewhereDelay, 30 s
	inlineWait = 300 * time.Millisecond // Config.InlineWait, 30 s
	lateAfter  = 2 * time.Second        // Config.LateAfter, 5 min
	lostAfter  = 8 * time.Second        // Config.LostAfter, 1 h
	keepEarly  = 8 * time.Second        // Config.KeepEarly, 24 h
	sweepEvery = time.Second            // orchestration-sweep-timer, 5 min
	sweepLease = 3 * time.Second        // sweeperLease, 1 min
	idle       = 50 * time.Millisecond  // maxPollingInterval, 14 s
	maxDequeue = 8
	batch      = 16
)

func TestMain(m *testing.M) {
	hosts.Main()
	if document, ok := os.LookupEnv(nodeEnv); ok {
		if err := beNode(document); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// nodeConfig is the configuration of a node.
type nodeConfig struct {
	Name, Connection string
	// Legacy deploys the engine of that name, too.
	Legacy bool
}

// said is a line that a node writes: the first reports that it is ready, the others its counts.
type said struct {
	Counts orchestrator.Counts
}

// node is a process that handles messages: host and handler together.
type node struct {
	pipeline *engine.Pipeline
	runtime  *orchestrator.Runtime
	queues   *azure.Queues
	tables   *azure.Tables
	locks    hostlock.Locks
	work     sync.WaitGroup
}

// beNode runs a node until its standard input ends.
func beNode(document string) error {
	var c nodeConfig
	if err := json.Unmarshal([]byte(document), &c); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	n, definitions, err := newNode(c, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer n.work.Wait()
	defer stop()
	if err := n.prepare(ctx); err != nil {
		return err
	}
	// The app's timer drains poison queues; here they have listeners, so that a drill does not wait for it.
	handlers := map[string]func(context.Context, engine.Delivery) error{
		n.runtime.SignalQueue(): n.pipeline.HandleSignal, n.runtime.SignalQueue() + engine.PoisonSuffix: n.pipeline.HandleSignalPoison,
		n.runtime.ScheduleQueue(): n.pipeline.HandleSignal, n.runtime.ScheduleQueue() + engine.PoisonSuffix: n.pipeline.HandleSignalPoison,
		n.runtime.ActivityQueue(): n.pipeline.HandleActivities, n.runtime.ActivityQueue() + engine.PoisonSuffix: n.pipeline.HandleActivitiesPoison,
	}
	for _, d := range definitions {
		handlers[d.Queue], handlers[d.Queue+engine.PoisonSuffix] = n.pipeline.Handle, n.pipeline.HandlePoison
	}
	for queue, handle := range handlers {
		n.work.Go(func() { n.listen(ctx, queue, handle) })
	}
	n.work.Go(func() { n.sweep(ctx, log) })
	n.work.Go(func() { n.tell(ctx) })
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func newNode(c nodeConfig, log *slog.Logger) (*node, []engine.Definition, error) {
	a, err := azure.FromConnectionString(c.Connection)
	if err != nil {
		return nil, nil, err
	}
	n := &node{}
	if n.tables, err = azure.NewTables(a); err != nil {
		return nil, nil, err
	}
	if n.queues, err = azure.NewQueues(a); err != nil {
		return nil, nil, err
	}
	payloads, err := azure.NewBlobs(a)
	if err != nil {
		return nil, nil, err
	}
	definitions := []engine.Definition{drillOf(n.tables, c.Name)}
	if c.Legacy {
		definitions = append(definitions, legacy())
	}
	config := orchestrator.Config{Node: c.Name, Tables: n.tables, Queues: n.queues, Blobs: payloads, Log: log,
		InlineWait: inlineWait, LateAfter: lateAfter, LostAfter: lostAfter, KeepEarly: keepEarly,
		Ended:   func(ctx context.Context, out orchestrator.Outcome) error { return n.pipeline.Ended(ctx, out) },
		Stalled: func(ctx context.Context, out orchestrator.Outcome) error { return n.pipeline.Stalled(ctx, out) }}
	for _, d := range definitions {
		config.Orchestrators = append(config.Orchestrators, d.Orchestrator)
		config.Activities = append(append(config.Activities, d.Operations...), d.Activities...)
	}
	if n.runtime, err = orchestrator.New(config); err != nil {
		return nil, nil, err
	}
	n.locks = hostlock.Locks{Tables: n.tables, Node: func() string { return c.Name }}
	n.pipeline, err = engine.NewPipeline(engine.Config{Definitions: definitions, Runtime: n.runtime, Queues: n.queues, HostMaxDequeueCount: maxDequeue,
		ElsewhereDelay: elsewhere, Log: log, History: engine.NewHistory(n.tables, ""), DeadLetters: engine.NewDeadLetters(n.tables, "")})
	return n, definitions, err
}

func (n *node) prepare(ctx context.Context) error {
	for _, prepare := range []func(context.Context) error{n.runtime.Prepare, n.pipeline.Prepare, n.locks.CreateTable,
		func(ctx context.Context) error { return n.tables.CreateTable(ctx, doneTable) }} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// every runs a function repeatedly until the end of ctx.
func every(ctx context.Context, d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// listen delivers the messages of a queue, as the host does.
func (n *node) listen(ctx context.Context, queue string, handle func(context.Context, engine.Delivery) error) {
	slots := make(chan struct{}, batch)
	every(ctx, idle, func() {
		for {
			messages, err := n.queues.Receive(ctx, queue, batch, visibility)
			if err != nil || len(messages) == 0 {
				return // storage may be unavailable
			}
			for _, m := range messages {
				slots <- struct{}{}
				n.work.Go(func() {
					defer func() { <-slots }()
					n.take(ctx, queue, m, handle)
				})
			}
		}
	})
}

// take handles a message, keeps it hidden meanwhile, and settles it.
func (n *node) take(ctx context.Context, queue string, m queues.Message, handle func(context.Context, engine.Delivery) error) {
	d := engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
	handled := make(chan error, 1)
	go func() { handled <- handle(ctx, d) }()
	receipt := m.PopReceipt
	tick := time.NewTicker(visibility / 3)
	defer tick.Stop()
	for {
		select {
		case err := <-handled:
			n.settle(ctx, queue, m, receipt, err)
			return
		case <-tick.C:
			if renewed, err := n.queues.Renew(ctx, queue, m.ID, receipt, visibility); err == nil {
				receipt = renewed
			}
		}
	}
}

// settle deletes, requeues or abandons a message. A failure here requeues it, too.
func (n *node) settle(ctx context.Context, queue string, m queues.Message, receipt string, failure error) {
	if failure != nil && m.DequeueCount < maxDequeue {
		_, _ = n.queues.Renew(ctx, queue, m.ID, receipt, retryAfter)
		return
	}
	if failure != nil {
		if _, err := n.queues.SendText(ctx, queue+engine.PoisonSuffix, m.Text, 0); err != nil {
			return
		}
	}
	_ = n.queues.Delete(ctx, queue, m.ID, receipt)
}

func (n *node) sweep(ctx context.Context, log *slog.Logger) {
	every(ctx, sweepEvery, func() {
		err := n.locks.Do(ctx, "sweeper", sweepLease, func(ctx context.Context) error {
			_, err := n.runtime.Sweep(ctx, 1000)
			return err
		})
		if err != nil {
			log.Info("sweep", "reason", err.Error())
		}
	})
}

// tell writes the node's counts when they have changed.
func (n *node) tell(ctx context.Context) {
	out := json.NewEncoder(os.Stdout)
	last := said{Counts: orchestrator.Counts{Stale: -1}}
	every(ctx, idle, func() {
		if now := (said{n.runtime.Counts()}); now != last && out.Encode(now) == nil {
			last = now
		}
	})
}
