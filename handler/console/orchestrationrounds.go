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
	// roundsLimit is how many rounds a page shows, and maxRoundRows how many of what they have in them.
	roundsLimit  = "20"
	maxRoundRows = 500
	// maxOfflineRows is the same for a history that was opened, which has no further pages.
	maxOfflineRows = 2000
)

// roundsPart is a page of the rounds of an orchestration: what it learned and decided, oldest first.
type roundsPart struct {
	Rows []roundRow
	// Left says how many rows of these rounds are not shown.
	Left int
	// Next is the address of what follows, and First that of the beginning; "" where there is none.
	Next, First string
	// Failed is why they cannot be shown, "" if they can.
	Failed Text

	most int // of the rows, 0 for maxRoundRows
}

// roundRow is one thing that was learned or decided.
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
	// Payload is what came with it, in short.
	Payload Text
}

// Child is the address of the orchestration that it is about, "" if it is about none.
func (r roundRow) Child() string { return orchestrationLink(r.ChildID) }

// roundItem is one round as the API has it.
type roundItem struct {
	Execution int          `json:"execution"`
	Round     int          `json:"round"`
	Learned   []roundEvent `json:"learned"`
	Decided   []roundEvent `json:"decided"`
}

// roundEvent is one thing of a round as the API has it.
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

// shown is the payload in short: its beginning, or why there is none.
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

// askRounds asks for the rounds that the address says.
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

// addAll adds what is in rounds.
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
