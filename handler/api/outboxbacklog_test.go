package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
)

// The backlog is told of the tenants that the caller may see, and of no others.
func TestOutboxBacklog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	var asked []string
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) {
		c.Backlog = func(_ context.Context, tenant string) (outbox.Backlog, error) {
			asked = append(asked, tenant)
			if tenant == "broken" {
				return outbox.Backlog{}, errors.New("storage is down")
			}
			return outbox.Backlog{More: true, Rows: []outbox.BacklogRow{{TenantID: "acme", Destination: "crm", Waiting: 500, Failed: 2, AtLeast: true, OldestAt: at}, {TenantID: "acme", Waiting: 1, OldestAt: at}}}, nil
		}
	})
	path := outboxPath + "/backlog"
	want := backlogList{More: true, Items: []backlogItem{{TenantID: "acme", Destination: "crm", Waiting: 500, Failed: 2, AtLeast: true, OldestAtUtc: at}, {TenantID: "acme", Waiting: 1, OldestAtUtc: at}}}
	testenv.Diff(t, want, data[backlogList](t, b.get(t, path)), "")
	b.get(t, path+"?tenant=acme")
	red := caller("ann", "red", "Roundhouse.Operator")
	if rec := b.get(t, path, "X-MS-CLIENT-PRINCIPAL", red); rec.Code != http.StatusOK {
		t.Errorf("of one tenant: %d %s", rec.Code, rec.Body)
	}
	if got := data[backlogList](t, b.get(t, path+"?tenant=acme", "X-MS-CLIENT-PRINCIPAL", red)); len(got.Items) != 0 {
		t.Errorf("another tenant's: %+v", got)
	}
	if len(asked) != 3 || asked[0] != "" || asked[1] != "acme" || asked[2] == "" || asked[2] == "acme" {
		t.Errorf("asked for %q", asked)
	}
	for query, status := range map[string]int{"?limit=3": 400, "?tenant=" + long(): 400, "?tenant=broken": 500} {
		if rec := b.get(t, path+query); rec.Code != status {
			t.Errorf("%.20s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

func long() string { return fmt.Sprintf("%0*d", outbox.MaxIDLength+1, 0) }

// Circuits are told by destination, of nodes that are alive; what cannot be read keeps nothing else from being told.
func TestOutboxCircuits(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	open := func(destination string, after, until time.Duration) outbox.OpenCircuit {
		return outbox.OpenCircuit{Destination: destination, Since: began.Add(after), Until: began.Add(until), Failures: 5, Reason: "status 503"}
	}
	node := func(name string, state nodes.State, said string) nodes.Info {
		return nodes.Info{Name: name, State: state, Since: began, Seen: began.Add(time.Hour), Said: said}
	}
	all := []nodes.Info{
		node("a", nodes.StateAlive, outbox.EncodeCircuits([]outbox.OpenCircuit{open("crm", time.Minute, 2*time.Minute), open("bill", 0, time.Minute)})),
		node("b", nodes.StateAlive, outbox.EncodeCircuits([]outbox.OpenCircuit{open("crm", 0, 90*time.Second)})),
		node("gone", nodes.StateGone, outbox.EncodeCircuits([]outbox.OpenCircuit{open("gone", 0, 0)})),
		node("taken", nodes.StateTaken, outbox.EncodeCircuits([]outbox.OpenCircuit{open("taken", 0, 0)})),
		node("newer", nodes.StateAlive, "?"), node("quiet", nodes.StateAlive, ""),
	}
	var failure error
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) { c.Nodes = func(context.Context) ([]nodes.Info, error) { return all, failure } })
	path := outboxPath + "/circuits"
	on := func(name string, after, until time.Duration) circuitNode {
		return circuitNode{Node: name, SinceUtc: began.Add(after), UntilUtc: began.Add(until), Failures: 5, Reason: "status 503", SeenUtc: began.Add(time.Hour)}
	}
	want := []circuitItem{
		{Destination: "bill", SinceUtc: began, UntilUtc: began.Add(time.Minute), Nodes: []circuitNode{on("a", 0, time.Minute)}},
		{Destination: "crm", SinceUtc: began, UntilUtc: began.Add(90 * time.Second), Nodes: []circuitNode{on("a", time.Minute, 2*time.Minute), on("b", 0, 90*time.Second)}},
	}
	testenv.Diff(t, want, data[list[circuitItem]](t, b.get(t, path)).Items, "")
	for i := range maxCircuitNodes {
		all = append(all, node(fmt.Sprint("more-", i), nodes.StateAlive, all[1].Said))
	}
	if got := data[list[circuitItem]](t, b.get(t, path)).Items; len(got) != 2 || len(got[1].Nodes) != maxCircuitNodes || got[1].NodesLeftOut != 2 {
		t.Errorf("of many nodes: %+v", got)
	}
	if rec := b.get(t, path, "X-MS-CLIENT-PRINCIPAL", caller("ann", "red", "operator")); rec.Code != http.StatusForbidden {
		t.Errorf("of one tenant: %d", rec.Code)
	}
	if rec := b.get(t, path+"?limit=3"); rec.Code != http.StatusBadRequest {
		t.Errorf("an unknown parameter: %d", rec.Code)
	}
	if failure = errors.New("storage is down"); b.get(t, path).Code != http.StatusInternalServerError {
		t.Error("nodes that cannot be read are no empty list")
	}
}
