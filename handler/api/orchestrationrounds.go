package api

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
)

// roundItem is one atomic commit of an orchestration.
type roundItem struct {
	Execution int         `json:"execution"`
	Round     int         `json:"round"`
	Learned   []eventItem `json:"learned"`
	Decided   []eventItem `json:"decided"`
}

// eventItem is one entry of a round.
type eventItem struct {
	Kind    string          `json:"kind"`
	At      time.Time       `json:"atUtc"`
	Call    int             `json:"call,omitempty"`
	Name    string          `json:"name,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// PayloadBytes replaces a payload that is too large for an answer, PayloadInBlob one in a blob.
	PayloadBytes  int          `json:"payloadBytes,omitempty"`
	PayloadInBlob bool         `json:"payloadInBlob,omitempty"`
	Failure       *failureItem `json:"failure,omitempty"`
	Attempt       int          `json:"attempt,omitempty"`
	Due           time.Time    `json:"dueAtUtc,omitzero"`
	ChildID       string       `json:"childId,omitempty"`
	SignalID      string       `json:"signalId,omitempty"`
	Reason        string       `json:"reason,omitempty"`
	Reused        bool         `json:"reused,omitempty"`
	Local         bool         `json:"local,omitempty"`
}

// listRounds lists the rounds of an orchestration, oldest first.
func (a *api) listRounds(ctx context.Context, r *request) (reply, error) {
	id, err := orchestrationID(r)
	if err != nil {
		return reply{}, err
	}
	q := newQuery(r.http.URL.RawQuery, "limit", "continuationToken")
	limit := cmp.Or(q.limit(), defaultPage)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	s, err := a.runtime.Status(ctx, id)
	if err == nil {
		err = r.mayHave(s)
	}
	if err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("rounds", id)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	rounds, next, err := a.runtime.Rounds(ctx, id, limit, place)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(rounds, sealToken(next, fingerprint), roundItemOf)}, nil
}

func roundItemOf(r orchestrator.Round) roundItem {
	show := func(events []orchestrator.RoundEvent) []eventItem {
		items := make([]eventItem, len(events))
		for i, e := range events {
			items[i] = eventItem{Kind: e.Kind, At: e.At, Call: e.Call, Name: e.Name, PayloadInBlob: e.InBlob, Failure: failureItemOf(e.Failure),
				Attempt: e.Attempt, Due: e.Due, ChildID: e.Child, SignalID: e.Signal, Reason: e.Reason, Reused: e.Reused, Local: e.Local}
			if e.Kind == "EventRaised" {
				items[i].Name = redact.Text(e.Name) // from callers
			}
			items[i].Payload, items[i].PayloadBytes = shownPayload(e.Payload)
		}
		return items
	}
	return roundItem{r.Execution, r.Number, show(r.Learned), show(r.Decided)}
}
