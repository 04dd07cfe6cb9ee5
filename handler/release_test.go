package handler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// namedNode is a process that is always confirmed.
type namedNode string

func (n namedNode) Name() string                          { return string(n) }
func (n namedNode) Hold(string) func()                    { return func() {} }
func (n namedNode) Confirm(context.Context, string) error { return nil }
func (n namedNode) Say(string)                            {}

// holder returns a process with an outbox, locks, and a poller, which holds or releases claims.
func holder(t *testing.T, st Platform, name string) *parts {
	t.Helper()
	node := namedNode(name)
	p := &parts{log: slog.New(slog.DiscardHandler), locks: hostlock.Locks{Tables: st.Tables, Node: node.Name}}
	p.events, _ = newEventsOn(t, st, node, toQueue)
	p.pollers = &pollers{jobs: []*pollerJob{{setting: poller.Setting{Name: "orders", State: poller.StateBlob}}}, stores: map[string]poller.Store{poller.StateBlob: poller.BlobStore{Blobs: st.Blobs}}}
	testenv.OK(t, p.locks.CreateTable(t.Context()))
	testenv.OK(t, p.pollers.stores[poller.StateBlob].Create(t.Context()))
	return p
}

// poll ticks the poller of a process.
func (p *parts) poll(t *testing.T, name string, deliver poller.HandlerFunc) poller.Result {
	t.Helper()
	source := &pollertest.Source{}
	source.Append(3)
	r, err := poller.NewRunner(poller.RunnerConfig{Name: "orders", Source: source, Store: p.pollers.stores[poller.StateBlob], Node: namedNode(name), Handler: deliver})
	testenv.OK(t, err)
	result, _ := r.Tick(t.Context()) // a dead process's tick fails
	return result
}

// A takeover frees the claims of a dead process, without waiting for the end of its leases.
func TestReleaseOfALostNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, releaseOfALostNode)
}

func releaseOfALostNode(t *testing.T) {
	st := memoryPlatform(t, &faults.Plan{})
	var dead atomic.Bool
	kill := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Send" && c.Target == "events" {
			dead.Store(true)
		}
		if dead.Load() {
			return faults.ErrCrashed
		}
		return next(ctx)
	}
	dying := st
	dying.Tables, dying.Queues, dying.Blobs = faults.Tables(st.Tables, kill), faults.Queues(st.Queues, kill), faults.Blobs(st.Blobs, kill)
	lost, taker := holder(t, dying, "lost"), holder(t, st, "taker")
	testenv.Must(lost.locks.Acquire(t.Context(), "job", time.Hour))(t)
	added := add(t, taker.events, `{"n":1}`)
	lost.poll(t, "lost", func(context.Context, poller.Delivery) error {
		_, err := lost.events.dispatcher.Dispatch(t.Context(), "contoso")
		return err
	})
	if !dead.Load() {
		t.Fatal("the process has delivered nothing")
	}
	deliver := func() outbox.Result {
		r, err := taker.events.dispatcher.Dispatch(t.Context(), "contoso")
		testenv.OK(t, err)
		return r
	}
	accept := func(context.Context, poller.Delivery) error { return nil }
	if r := deliver(); r.Claimed != 0 {
		t.Fatalf("what the dead one had claimed was delivered before the takeover: %+v", r)
	}
	if r := taker.poll(t, "taker", accept); r.Skipped == nil {
		t.Fatalf("what the dead one was polling was polled before the takeover: %+v", r)
	}
	taker.release(t.Context(), nodes.Lost{Node: "lost", HostLives: true})
	if r := deliver(); r.Delivered != 1 || status(t, taker.events, added.ID) != outbox.StatusProcessed {
		t.Errorf("%+v", r)
	}
	if r := taker.poll(t, "taker", accept); r.Rows != 3 {
		t.Errorf("%+v", r)
	}
	if _, err := taker.locks.Acquire(t.Context(), "job", time.Hour); err != nil {
		t.Error(err)
	}
}

// A failed release is reported, and the other releases still happen.
func TestReleaseWithoutAnOutbox(t *testing.T) {
	t.Parallel()
	st := memoryPlatform(t, &faults.Plan{})
	broken := st
	broken.Tables = faults.Tables(st.Tables, (&faults.Plan{Refuse: func(c faults.Call) bool { return c.Operation == "Query" && c.Target == outbox.DefaultTable }}).Intercept)
	lost, taker := holder(t, st, "lost"), holder(t, broken, "taker")
	var log bytes.Buffer
	taker.log = slog.New(slog.NewTextHandler(&log, nil))
	testenv.Must(lost.locks.Acquire(t.Context(), "job", time.Hour))(t)
	taker.release(t.Context(), nodes.Lost{Node: "lost"})
	if _, err := taker.locks.Acquire(t.Context(), "job", time.Hour); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "node=lost") || !strings.Contains(text, tables.ErrThrottled.Error()) {
		t.Error(text)
	}
}
