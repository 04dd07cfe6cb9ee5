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

// nodeItem is a node as a list shows it.
type nodeItem struct {
	Node     string      `json:"node"`
	Host     string      `json:"host,omitempty"`
	PID      int         `json:"pid"`
	Version  string      `json:"version,omitempty"`
	State    nodes.State `json:"state"`
	SinceUtc time.Time   `json:"sinceUtc"`
	// SeenUtc is when it last told of itself, and InHand how much it had in hand then; More says that Orchestrations is not all.
	SeenUtc        time.Time `json:"seenUtc"`
	InHand         int       `json:"inHand"`
	Orchestrations []string  `json:"orchestrations,omitempty"`
	More           bool      `json:"more,omitempty"`
	// TakenBy is who has taken over from it, TakenOver how many orchestrations that were.
	TakenBy    string    `json:"takenBy,omitempty"`
	TakenAtUtc time.Time `json:"takenAtUtc,omitzero"`
	TakenOver  int       `json:"takenOver,omitempty"`
	Finished   bool      `json:"finished,omitempty"`
}

// listNodes shows the processes that have run the app within a day, the latest to begin first. They are few, so one look at all
// of them gives a page.
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

// pageOfNodes gives the nodes behind a place. A node's place is when it began, which does not change, and its name.
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
