package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
)

// maxCircuitNodes bounds the named nodes with an open circuit to a destination.
const maxCircuitNodes = 20

// backlogList lists the waiting messages of the outbox, by tenant and destination.
type backlogList struct {
	Items []backlogItem `json:"items"`
	// More means that other tenants or rows exist.
	More bool `json:"more,omitempty"`
}

// backlogItem counts the waiting messages of one tenant for one destination, which is missing without a route.
type backlogItem struct {
	TenantID    string    `json:"tenantId"`
	Destination string    `json:"destination,omitempty"`
	Waiting     int       `json:"waiting"`
	Failed      int       `json:"failed"`
	AtLeast     bool      `json:"atLeast,omitempty"`
	OldestAtUtc time.Time `json:"oldestAtUtc"`
}

// outboxBacklog counts the waiting messages of all tenants that the caller may see.
func (a *api) outboxBacklog(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "tenant")
	tenant := q.text("tenant", outbox.MaxIDLength)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	out := backlogList{Items: []backlogItem{}}
	if tenant = cmp.Or(tenant, r.principal().Scope); !r.principal().Sees(tenant) {
		return reply{data: out}, nil
	}
	b, err := a.backlog(ctx, tenant)
	if err != nil {
		return reply{}, err
	}
	out.More = b.More
	for _, row := range b.Rows {
		out.Items = append(out.Items, backlogItem{TenantID: row.TenantID, Destination: row.Destination, Waiting: row.Waiting, Failed: row.Failed, AtLeast: row.AtLeast, OldestAtUtc: row.OldestAt})
	}
	return reply{data: out}, nil
}

// circuitItem is a destination with open circuits.
type circuitItem struct {
	Destination string `json:"destination"`
	// SinceUtc is when the first of the circuits opened, and UntilUtc when the first of them retries.
	SinceUtc time.Time     `json:"sinceUtc"`
	UntilUtc time.Time     `json:"untilUtc"`
	Nodes    []circuitNode `json:"nodes"`
	// NodesLeftOut is the number of further nodes.
	NodesLeftOut int `json:"nodesLeftOut,omitempty"`
}

// circuitNode is a node with an open circuit, by its report at SeenUtc or before.
type circuitNode struct {
	Node     string    `json:"node"`
	SinceUtc time.Time `json:"sinceUtc"`
	UntilUtc time.Time `json:"untilUtc"`
	Failures int       `json:"failures"`
	Reason   string    `json:"reason,omitempty"`
	SeenUtc  time.Time `json:"seenUtc"`
}

// outboxCircuits lists the destinations with open circuits, by the reports of live nodes.
func (a *api) outboxCircuits(ctx context.Context, r *request) (reply, error) {
	if err := newQuery(r.http.URL.RawQuery).err(); err != nil {
		return reply{}, err
	}
	all, err := a.nodes(ctx)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(a.circuitsOf(ctx, all), "", func(c circuitItem) circuitItem { return c })}, nil
}

// circuitsOf groups the nodes' reports by destination.
func (a *api) circuitsOf(ctx context.Context, all []nodes.Info) []circuitItem {
	by := map[string]*circuitItem{}
	for _, n := range all {
		if n.State != nodes.StateAlive {
			continue
		}
		open, err := outbox.DecodeCircuits(n.Said)
		if err != nil { // perhaps of another version
			a.log.WarnContext(ctx, "what a node says of its circuits is left out", "node", n.Name, "error", err.Error())
		}
		for _, c := range open {
			item := by[c.Destination]
			if item == nil {
				item = &circuitItem{Destination: c.Destination, SinceUtc: c.Since, UntilUtc: c.Until}
				by[c.Destination] = item
			}
			item.add(circuitNode{Node: n.Name, SinceUtc: c.Since, UntilUtc: c.Until, Failures: c.Failures, Reason: c.Reason, SeenUtc: n.Seen})
		}
	}
	var items []circuitItem
	for _, item := range by {
		items = append(items, *item)
	}
	slices.SortFunc(items, func(a, b circuitItem) int { return strings.Compare(a.Destination, b.Destination) })
	return items
}

// add adds a node.
func (c *circuitItem) add(n circuitNode) {
	if n.SinceUtc.Before(c.SinceUtc) {
		c.SinceUtc = n.SinceUtc
	}
	if n.UntilUtc.Before(c.UntilUtc) {
		c.UntilUtc = n.UntilUtc
	}
	if len(c.Nodes) == maxCircuitNodes {
		c.NodesLeftOut++
		return
	}
	c.Nodes = append(c.Nodes, n)
}
