package acceptance

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// testDeaths kills the handler in the middle of rotations.
func (p *platform) testDeaths(t *testing.T) {
	for _, at := range []int{3, 5, 7} {
		id := uuid.NewString()
		p.proxy.arm(at, after)
		p.send(t, hmac.Queue, rotation(id, "instance-"+id))
		p.succeeded(t, id, "instance-"+id)
	}
	p.proxy.arm(0, "")
}

// testSchedule makes a rotation due, and lets the timer fire twice: it sends one rotation.
func (p *platform) testSchedule(t *testing.T) {
	p.owe(t, hmac.Engine, "schedule", "instance-scheduled")
	for range 2 {
		p.fire(t, "schedules-timer")
	}
	query := url.Values{"instanceId": {"instance-scheduled"}, "operation": {"rotate"}}
	testenv.Until(t, "the rotation", func() bool { return len(p.list(t, "/api/history", query)) > 0 })
	p.drained(t, hmac.Queue)
	entries := p.list(t, "/api/history", query)
	if len(entries) != 1 {
		t.Fatalf("%d rotations of two ticks, want 1", len(entries))
	}
	p.succeeded(t, fmt.Sprint(entries[0]["correlationId"]), "instance-scheduled")
}
