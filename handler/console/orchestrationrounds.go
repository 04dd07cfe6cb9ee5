package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

const (
	// roundsLimit is the number of rounds of a page, and maxRoundRows the number of their rows.
	roundsLimit  = "20"
	maxRoundRows = 500
	// maxOfflineRows is the same for an opened history, which has no further pages.
	maxOfflineRows = 2000
)

// roundsPart is a page of the rounds of an orchestration: its events and decisions, oldest first.
type roundsPart struct {
	Rows []roundRow
	// Left is the number of omitted rows of these rounds.
	Left int
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Failed is the reason why they cannot be shown, "" if they can.
	Failed Text

	most int // of the rows, 0 for maxRoundRows
}

// roundRow is one event or decision.
type roundRow struct {
	Execution, Round int
	At               time.Time
	Learned          bool
	Kind, Name       Text
	ChildID          Text
	Attempt          int
	Due              time.Time
	Reason           Text
	Error            *runError
	// Payload is its payload, in short.
	Payload Text
}

// Child returns the address of its orchestration, "" without one.
func (r roundRow) Child() string { return orchestrationLink(r.ChildID) }

// roundItem is one round as in the API.
type roundItem struct {
	Execution int          `json:"execution"`
	Round     int          `json:"round"`
	Learned   []roundEvent `json:"learned"`
	Decided   []roundEvent `json:"decided"`
}

// roundEvent is one entry of a round as in the API.
type roundEvent struct {
	Kind          Text            `json:"kind"`
	At            time.Time       `json:"atUtc"`
	Name          Text            `json:"name"`
	Payload       json.RawMessage `json:"payload"`
	PayloadBytes  int             `json:"payloadBytes"`
	PayloadInBlob bool            `json:"payloadInBlob"`
	Failure       *runError       `json:"failure"`
	Attempt       int             `json:"attempt"`
	Due           time.Time       `json:"dueAtUtc"`
	ChildID       Text            `json:"childId"`
	Reason        Text            `json:"reason"`
}

// shown returns the beginning of the payload, or the reason for a missing one.
func (e roundEvent) shown() Text {
	switch {
	case e.PayloadInBlob:
		return "in a blob"
	case e.PayloadBytes > 0:
		return Text(fmt.Sprintf("%s, too large to be shown", size(e.PayloadBytes)))
	default:
		return line(Text(e.Payload))
	}
}

// askRounds requests the rounds in the address.
func (v *visit) askRounds(ctx context.Context, id Text) (p roundsPart) {
	asked := url.Values{"limit": {roundsLimit}}
	if token := v.r.URL.Query().Get("continuationToken"); token != "" {
		asked.Set("continuationToken", token)
		p.First = orchestrationLink(id)
	}
	var list struct {
		Items []roundItem `json:"items"`
		Token string      `json:"continuationToken"`
	}
	if err := v.api.get(ctx, v.orchestrationRow()+"/rounds", asked, &list); err != nil {
		p.Failed = Text(err.Error())
		return p
	}
	p.addAll(list.Items)
	if list.Token != "" {
		p.Next = address(orchestrationLink(id), url.Values{"continuationToken": {list.Token}})
	}
	return p
}

// addAll adds the rows of rounds.
func (p *roundsPart) addAll(rounds []roundItem) {
	for _, r := range rounds {
		for n, events := range [][]roundEvent{r.Learned, r.Decided} {
			for _, e := range events {
				p.add(roundRow{Execution: r.Execution, Round: r.Round, At: e.At, Learned: n == 0, Kind: e.Kind, Name: e.Name, ChildID: e.ChildID,
					Attempt: e.Attempt, Due: e.Due, Reason: e.Reason, Error: e.Failure, Payload: e.shown()})
			}
		}
	}
}

func (p *roundsPart) add(r roundRow) {
	if len(p.Rows) == cmp.Or(p.most, maxRoundRows) {
		p.Left++
		return
	}
	p.Rows = append(p.Rows, r)
}
