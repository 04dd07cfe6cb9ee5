package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
)

// The page of the outbox tells what waits of the tenants that somebody may see, and what other nodes say that they hold back.
func TestBacklogAndCircuits(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.publish(t, "acme")
	b.publish(t, accesstest.ID("blue"))
	other, err := nodes.New(nodes.Config{Tables: b.Tables, Queues: b.Queues, Queue: orchestrator.DefaultScheduleQueue, Name: "other-node", TakeOver: func(context.Context, nodes.Lost, func(int)) error { return errors.New("nobody is lost") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	now := time.Now()
	other.Say(outbox.EncodeCircuits([]outbox.OpenCircuit{{Destination: "crm-held-back", Since: now, Until: now.Add(time.Minute), Failures: 5, Reason: "status 503"}}))
	if err := other.Start(t.Context()); err != nil { // writes its row
		t.Fatal(err)
	}
	_, text := b.Do(http.MethodGet, console.Root+"/outbox", "", ann("Reader").Sign)
	for _, want := range []string{">crm-held-back<", ">other-node-", "status 503", "tenant=acme\">", "<bdi>log</bdi>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not there: %s", want, text)
		}
	}
	if _, text := b.Do(http.MethodGet, console.Root+"/outbox?tenant=acme&status=dead", "", ann("Reader").Sign); !strings.Contains(text, "<bdi>log</bdi>") || strings.Contains(text, accesstest.ID("blue")) {
		t.Errorf("of one tenant: %s", text)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	for _, target := range []string{"/outbox", "/outbox?tenant=acme"} {
		if _, text := b.Do(http.MethodGet, console.Root+target, "", red.Sign); strings.Contains(text, "<bdi>log</bdi>") || strings.Contains(text, "crm-held-back") || strings.Contains(text, accesstest.ID("blue")) {
			t.Errorf("%s of another tenant: %s", target, text)
		}
	}
}
