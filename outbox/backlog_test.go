package outbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// Pending messages are counted by tenant and destination, ordered and failed ones included; ended ones are not.
func TestBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := transport(func(context.Context, Event) error { return errors.New("down") })
	p := w.routed(t, nil, []Route{{EventType: "bad.*", Destination: "bad"}, {EventType: "bad.*", TenantID: "red", Destination: "red-only"}, {EventType: "order.*", Destination: "good"}},
		Destinations{"bad": broken, "red-only": broken, "good": w})
	add := func(n int, tenant, eventType, order string) {
		m := message1(n)
		m.TenantID, m.EventType, m.OrderKey = tenant, eventType, order
		p.add(t, m)
		w.pass(time.Second)
	}
	add(1, "acme", "bad.one", "")
	add(2, "acme", "bad.two", "k")
	add(3, "acme", "bad.two", "k")
	add(4, "acme", "lost", "")
	add(5, "red", "bad.one", "")
	add(6, "done", "order.created", "")
	p.sweep(t)
	add(7, "acme", "order.created", "")
	want := Backlog{Rows: []BacklogRow{
		{TenantID: "acme", Destination: "bad", Waiting: 3, Failed: 2, OldestAt: noon()},
		{TenantID: "acme", Waiting: 1, OldestAt: noon().Add(3 * time.Second)},
		{TenantID: "acme", Destination: "good", Waiting: 1, OldestAt: noon().Add(6 * time.Second)},
		{TenantID: "red", Destination: "red-only", Waiting: 1, Failed: 1, OldestAt: noon().Add(4 * time.Second)},
	}}
	got, err := p.dispatcher.Backlog(t.Context(), "")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("all: %v (-want +got):\n%s", err, diff)
	}
	got, err = p.dispatcher.Backlog(t.Context(), "red")
	if diff := cmp.Diff(Backlog{Rows: want.Rows[3:]}, got); diff != "" || err != nil {
		t.Errorf("red: %v (-want +got):\n%s", err, diff)
	}
	if got, err := p.dispatcher.Backlog(t.Context(), "nobody"); len(got.Rows) != 0 || got.More || err != nil {
		t.Errorf("nobody: %+v, %v", got, err)
	}
}

// A large backlog is counted up to the limit, and reports that.
func TestBacklogBounds(t *testing.T) {
	_, p := start(t)
	for i := range MaxBacklogMessages {
		p.add(t, message1(i))
	}
	exact, err := p.dispatcher.Backlog(t.Context(), "acme")
	if err != nil || len(exact.Rows) != 1 || exact.Rows[0].Waiting != MaxBacklogMessages || exact.Rows[0].AtLeast {
		t.Fatalf("%+v, %v", exact, err)
	}
	p.add(t, message1(MaxBacklogMessages))
	for i := range MaxBacklogTenants {
		m := message1(i)
		m.TenantID = fmt.Sprintf("t%03d", i)
		p.add(t, m)
	}
	got, err := p.dispatcher.Backlog(t.Context(), "")
	if err != nil || len(got.Rows) != MaxBacklogTenants || !got.More || got.Rows[0].Waiting != MaxBacklogMessages || !got.Rows[0].AtLeast || got.Rows[1].AtLeast {
		t.Errorf("%d rows, more %v, %+v, %v", len(got.Rows), got.More, got.Rows[0], err)
	}
}

// An unreadable backlog is an error, not an empty backlog.
func TestBacklogFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(t, nil).add(t, message1(1))
	down := errors.New("storage is down")
	for _, at := range []int{1, 2, 3} {
		n := 0
		p := w.intercepted(t, func(ctx context.Context, _ faults.Call, do func(context.Context) error) error {
			if n++; n == at {
				return down
			}
			return do(ctx)
		}, []Route{{EventType: "*", Destination: "sink"}}, Destinations{"sink": w})
		if got, err := p.dispatcher.Backlog(t.Context(), ""); !errors.Is(err, down) || len(got.Rows) != 0 {
			t.Errorf("request %d: %+v, %v", at, got, err)
		}
	}
}

// Circuits reports the open circuits with their times, also after a failed try, and when they close.
func TestOpenCircuits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.CircuitFailures, w.options.MaxPerDestination = 2, 1
	var failure error = &DeliveryError{Status: 503, Err: errors.New("secret of the receiver")}
	w.deliver = func(context.Context, Event) error { return failure }
	p := w.process(t, nil)
	var told [][]OpenCircuit
	p.dispatcher.circuits = func(open []OpenCircuit) { told = append(told, open) }
	for i := range 3 {
		p.add(t, message1(i))
	}
	p.sweep(t)
	opened := w.now()
	w.pass(32 * time.Second)
	failure = context.DeadlineExceeded
	p.sweep(t)
	tried := w.now()
	w.pass(2 * time.Minute)
	failure = nil
	p.sweep(t)
	want := [][]OpenCircuit{
		{{Destination: "sink", Since: opened, Until: opened.Add(30 * time.Second), Failures: 2, Reason: "status 503"}},
		{{Destination: "sink", Since: opened, Until: tried.Add(time.Minute), Failures: 3, Reason: "no answer in time"}},
		nil,
	}
	testenv.Equal(t, "", want, told)
}

// The kind of a failure contains nothing of the destination's answer.
func TestFailureKind(t *testing.T) {
	t.Parallel()
	secret := errors.New("token=abc")
	for want, err := range map[string]error{
		"":                    nil,
		"status 410":          fmt.Errorf("sent: %w", &DeliveryError{Status: 410, Err: secret}),
		"no answer in time":   fmt.Errorf("%w: %w", secret, context.DeadlineExceeded),
		"no connection":       &net.OpError{Op: "dial", Err: secret},
		"the delivery failed": errors.Join(secret, &DeliveryError{Err: errors.New(uuid.NewString())}),
		"the name of the host cannot be resolved": &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "abc"}},
	} {
		if got := failureKind(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
