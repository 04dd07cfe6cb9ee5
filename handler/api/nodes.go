package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// nodeItem is a node in a list.
type nodeItem struct {
	Node     string      `json:"node"`
	Host     string      `json:"host,omitempty"`
	PID      int         `json:"pid"`
	Version  string      `json:"version,omitempty"`
	State    nodes.State `json:"state"`
	SinceUtc time.Time   `json:"sinceUtc"`
	// SeenUtc is the time of its last heartbeat, and InHand its work in progress then; More means that Orchestrations
	// is incomplete.
	SeenUtc        time.Time `json:"seenUtc"`
	InHand         int       `json:"inHand"`
	Orchestrations []string  `json:"orchestrations,omitempty"`
	More           bool      `json:"more,omitempty"`
	// TakenBy is the node that has taken over from it, TakenOver the number of orchestrations.
	TakenBy    string    `json:"takenBy,omitempty"`
	TakenAtUtc time.Time `json:"takenAtUtc,omitzero"`
	TakenOver  int       `json:"takenOver,omitempty"`
	Finished   bool      `json:"finished,omitempty"`
}

// listNodes lists the processes of the app in the last day, the newest first. They are few, so each page reads all of
// them.
func (a *api) listNodes(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "state", "limit", "continuationToken")
	state := nodes.State(q.oneOf("state", string(nodes.StateAlive), string(nodes.StateGone), string(nodes.StateTaken)))
	limit := cmp.Or(q.limit(), engine.DefaultLimit)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("nodes", state)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	all, err := a.nodes(ctx)
	if err != nil {
		return reply{}, err
	}
	page, next := pageOfNodes(all, state, place, limit)
	return reply{data: listOf(page, sealToken(next, fingerprint), nodeItemOf)}, nil
}

// pageOfNodes returns the nodes behind a place. A node's place is its constant start time, and its name.
func pageOfNodes(all []nodes.Info, state nodes.State, place string, limit int) (page []nodes.Info, next string) {
	slices.SortFunc(all, func(a, b nodes.Info) int { return strings.Compare(placeOf(b), placeOf(a)) })
	for _, n := range all {
		switch {
		case state != "" && n.State != state, place != "" && placeOf(n) >= place:
		case len(page) == limit:
			return page, placeOf(page[limit-1])
		default:
			page = append(page, n)
		}
	}
	return page, ""
}

func placeOf(n nodes.Info) string {
	return n.Since.UTC().Format("2006-01-02T15:04:05.000000000") + " " + n.Name
}

func nodeItemOf(n nodes.Info) nodeItem {
	return nodeItem{Node: n.Name, Host: n.Host, PID: n.PID, Version: n.Version, State: n.State, SinceUtc: n.Since, SeenUtc: n.Seen,
		InHand: n.Hand.Count, Orchestrations: n.Hand.Orchestrations, More: n.Hand.More,
		TakenBy: n.TakenBy, TakenAtUtc: n.TakenAt, TakenOver: n.TakenOver, Finished: n.Finished}
}
