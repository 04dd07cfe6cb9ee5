package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// testNode is a node that a test takes over.
type testNode struct {
	mu   sync.Mutex
	name string
	held int
}

var errFenced = errors.New("fenced")

func (n *testNode) Name() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

func (n *testNode) Hold(string) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.held--
	}
}

func (n *testNode) Confirm(_ context.Context, name string) error {
	if n.Name() != name {
		return errFenced
	}
	return nil
}

// fence gives the node another name, as after a takeover.
func (n *testNode) fence(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name = name
}

// as returns a process with this node name.
func (w *world) as(t testing.TB, name string, plan *faults.Plan) (*process, *testNode) {
	t.Helper()
	n := &testNode{name: name}
	w.nodes = n
	defer func() { w.nodes = nil }()
	return w.process(t, plan), n
}

// claimed is a world in which node "lost" has died with claims of two tenants: two plain events, and the first of two
// with an order key.
func claimed(t testing.TB, w *world) (list []Message, lost *process, claims []*claimedMessage) {
	t.Helper()
	list = []Message{message1(0), message1(1), message1(2), message1(3)}
	list[1].TenantID = "zeta"
	list[2].OrderKey, list[3].OrderKey = "k", "k"
	p := w.process(t, nil)
	for _, m := range list {
		p.add(t, m)
	}
	lost, _ = w.as(t, "lost", nil)
	for _, tenant := range []string{"acme", "zeta"} {
		page, err := w.tables.Query(t.Context(), w.table, tables.Query{Partition: tenant, From: pendingPrefix, To: endOf(pendingPrefix)})
		if err != nil {
			t.Fatal(err)
		}
		var rows []dueRow
		for _, e := range page.Entities {
			m := testenv.Must(decode(e))(t)
			rows = append(rows, dueRow{e, m})
		}
		batch, err := lost.dispatcher.claim(t.Context(), rows)
		if err != nil || len(batch) != len(rows) {
			t.Fatal(len(batch), err)
		}
		claims = append(claims, batch...)
	}
	return list, lost, claims
}

func (p *process) release(t testing.TB, node string, ended bool) int {
	t.Helper()
	return testenv.Must(p.dispatcher.Release(t.Context(), node, ended))(t)
}

// Claimed messages of a lost node are delivered without waiting for the end of its claims.
func TestRelease(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		node     string
		ended    bool
		released int
		atOnce   int // delivered without waiting
		later    int // delivered after the longest delivery
	}{
		"a node that may live":  {"lost", false, 3, 2, 2},
		"a process that ended":  {"lost", true, 3, 4, 0},
		"another node":          {"los", true, 0, 0, 0},
		"another, longer named": {"lost-1", false, 0, 0, 0},
	}
	for name, tt := range tests {
		integration(t, name, func(t *testing.T, w *world) {
			claimed(t, w)
			p, node := w.as(t, "taker", nil)
			if n := p.release(t, tt.node, tt.ended); n != tt.released {
				t.Errorf("%d released", n)
			}
			if n := p.release(t, tt.node, tt.ended); n != 0 {
				t.Errorf("%d released again", n)
			}
			if r := p.sweep(t); r.Delivered != tt.atOnce {
				t.Errorf("at once: %+v", r)
			}
			w.pass(w.options.DeliveryTimeout + claimGrace)
			if r := p.sweep(t); r.Delivered != tt.later {
				t.Errorf("later: %+v", r)
			}
			w.pass(w.options.ClaimDuration)
			p.sweep(t)
			if n := len(w.events()); n != 4 || node.held != 0 {
				t.Errorf("%d delivered in the end, %d holds", n, node.held)
			}
			w.check(t, "acme")
			w.check(t, "zeta")
		})
	}
	t.Run("no name", func(t *testing.T) {
		t.Parallel()
		if _, err := newWorld(t).process(t, nil).dispatcher.Release(t.Context(), "", true); !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	})
}

// Each tenant with released messages is woken, immediately and, for waiting ones, at their due time.
func TestReleaseWakes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ended bool
		want  []string // tenants, in two reads of the queue
		later []string
	}{"may live": {false, []string{"acme", "zeta"}, []string{"acme"}}, "ended": {true, []string{"acme", "zeta"}, nil}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			claimed(t, w)
			w.pass(2 * wakeWindow)
			w.wakes(t) // of the messages themselves
			p, _ := w.as(t, "taker", nil)
			p.release(t, "lost", tt.ended)
			w.pass(wakeWindow)
			if got := fmt.Sprint(w.wakes(t)); got != fmt.Sprint(tt.want) {
				t.Errorf("woken: %s, want %v", got, tt.want)
			}
			w.pass(w.options.DeliveryTimeout + claimGrace)
			if got := fmt.Sprint(w.wakes(t)); got != fmt.Sprint(tt.later) {
				t.Errorf("woken later: %s, want %v", got, tt.later)
			}
		})
	}
}

// A node that was taken over during a delivery finds its settlement refused, and starts no other delivery under its old
// name.
func TestAFencedNodeSettlesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.MaxPerDestination = 1
	p := w.process(t, nil)
	for i := range 3 {
		p.add(t, message1(i))
	}
	lost, node := w.as(t, "lost", nil)
	taker, _ := w.as(t, "taker", nil)
	first := true
	w.deliver = func(context.Context, Event) error {
		if !first {
			return nil
		}
		first = false
		if node.held != 1 {
			t.Errorf("%d holds while it delivers", node.held)
		}
		node.fence("lost again")
		if n := taker.release(t, "lost", false); n != 3 {
			t.Errorf("%d released", n)
		}
		return nil
	}
	r, err := lost.dispatcher.Dispatch(t.Context(), "acme")
	if err != nil || r != (Result{Claimed: 3, Lost: 3}) {
		t.Errorf("as the one that was taken over from: %+v %v", r, err)
	}
	if n := len(w.events()); n != 1 {
		t.Errorf("%d deliveries began", n)
	}
	if r := lost.sweep(t); r.Delivered != 3 {
		t.Errorf("under another name: %+v", r)
	}
	if n := len(w.events()); n != 4 || node.held != 0 {
		t.Errorf("%d deliveries of 3 events, the first of them twice; %d holds", n, node.held)
	}
	if got := w.check(t, "acme")[StatusProcessed]; got != 3 {
		t.Errorf("%d are processed", got)
	}
}

// A late settlement of the lost node during the release counts, and the rest is released.
func TestReleaseBesideASettlement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, lost, claims := claimed(t, w)
	inner, settled := w.tables, false
	w.tables = faults.Tables(inner, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" && !settled {
			settled = true
			s := lost.dispatcher.succeeded(claims[0], Attempt{At: noon(), Node: "lost", Destination: "sink"})
			if err := lost.dispatcher.settle(ctx, []*settlement{s}); err != nil || s.lost {
				t.Errorf("lost: %v, %v", s.lost, err)
			}
		}
		return next(ctx)
	})
	p, _ := w.as(t, "taker", nil)
	w.tables = inner
	if claims[0].TenantID != claims[1].TenantID {
		t.Fatal("what is settled and what is released are not of one transaction")
	}
	if n, err := p.dispatcher.releaseTenant(t.Context(), "acme", "lost", true); n != 1 || err != nil {
		t.Errorf("%d released, %v", n, err)
	}
	if r, err := p.dispatcher.Dispatch(t.Context(), "acme"); r.Delivered != 2 || err != nil {
		t.Errorf("%+v %v", r, err)
	}
	w.check(t, "acme")
}

// A release breaks off at every call and in every way. Another one completes it, and no message is lost or waits for
// the end of its claim.
func TestReleaseCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t)
		list, _, _ := claimed(t, w)
		broken, _ := w.as(t, "broken", plan)
		n, err := broken.dispatcher.Release(t.Context(), "lost", false)
		if err == nil && n != 3 && plan.Fault == 0 {
			t.Errorf("%d released without a fault", n)
		}
		plan.Wait()
		p, _ := w.as(t, "taker", nil)
		p.release(t, "lost", false)
		p.sweep(t)
		w.pass(w.options.DeliveryTimeout + claimGrace)
		p.sweep(t)
		times := map[uuid.UUID]int{}
		for _, e := range w.events() {
			times[e.Key]++
		}
		for _, m := range list {
			if times[m.Key] != 1 {
				t.Errorf("%s was delivered %d times", m.Payload, times[m.Key])
			}
		}
		w.check(t, "acme")
		w.check(t, "zeta")
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count) })
	if n := len(count.Calls()); n < 6 {
		t.Fatalf("only %d calls", n)
	}
	for at := range count.Calls() {
		for _, fault := range faults.Faults() {
			name := fmt.Sprintf("%s-%d", fault, at+1)
			if !sample.Keep(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				sample.Repeat(t)
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
			})
		}
	}
}

// wakes receives the visible wake-ups, and returns their tenants.
func (w *world) wakes(t testing.TB) (tenants []string) {
	t.Helper()
	for {
		messages := testenv.Must(w.queues.Receive(t.Context(), w.queue, 32, time.Hour))(t)
		if len(messages) == 0 {
			slices.Sort(tenants)
			return slices.Compact(tenants)
		}
		for _, m := range messages {
			wake := testenv.Must(DecodeWake(m.Text))(t)
			tenants = append(tenants, wake.Tenant)
			testenv.OK(t, w.queues.Delete(t.Context(), w.queue, m.ID, m.PopReceipt))
		}
	}
}
