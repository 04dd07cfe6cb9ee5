package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// letterPage is one dead letter, its outcome, and the other entries of its correlation id.
type letterPage struct {
	Letter  letterDetail
	Message Payload
	// Sent is the message that an edited retry has sent.
	Sent Payload
	Held held
	// Done is the last action of this page: retried, edited, expired, or "".
	Done    string
	Related part[letterList]
	History part[historyList]
	Runs    part[timelineList]
}

// Pending reports whether it waits for a decision.
func (p letterPage) Pending() bool { return p.Letter.Status == "Pending" }

func (l letterList) empty() bool { return len(l.Items) == 0 }

// letterDetail is one dead letter.
type letterDetail struct {
	letterItem
	OriginalMessage         string       `json:"originalMessage"`
	OriginalMessageEncoding string       `json:"originalMessageEncoding"`
	MessageID               Text         `json:"messageId"`
	InsertedAt              time.Time    `json:"insertedAtUtc"`
	DetectedReason          Text         `json:"detectedReason"`
	Node                    Text         `json:"node"`
	ErrorSignature          Text         `json:"errorSignature"`
	ResolutionNotes         Text         `json:"resolutionNotes"`
	ResolvedAt              time.Time    `json:"resolvedAtUtc"`
	ResolvedBy              Text         `json:"resolvedBy"`
	ExpiredAt               time.Time    `json:"expiredAtUtc"`
	RetriedAt               time.Time    `json:"retriedAtUtc"`
	RetriedBy               Text         `json:"retriedBy"`
	RetryMessageID          Text         `json:"retryMessageId"`
	SentMessage             string       `json:"sentMessage"`
	Notes                   []letterNote `json:"notes"`

	etag string
}

// SameCause returns the address of the dead letters with this error, "" without a signature.
func (l letterDetail) SameCause() string {
	if l.ErrorSignature == "" {
		return ""
	}
	return address(lettersPath, url.Values{"errorSignature": {string(l.ErrorSignature)}, "status": {anyStatus}})
}

// historyList are entries of the history.
type historyList struct {
	Items []historyItem `json:"items"`
	Token string        `json:"continuationToken"`
}

func (l historyList) empty() bool { return len(l.Items) == 0 }

type historyItem struct {
	Engine       Text      `json:"engine"`
	Operation    Text      `json:"operation"`
	InstanceID   Text      `json:"instanceId"`
	Status       string    `json:"status"`
	DurationMs   int64     `json:"durationMs"`
	CreatedAt    time.Time `json:"createdAtUtc"`
	SupersededBy Text      `json:"supersededBy"`
}

// Took returns its duration.
func (h historyItem) Took() string { return span(time.Duration(h.DurationMs) * time.Millisecond) }

// relatedLimit is the number of related entries on the page of a dead letter.
const relatedLimit = "20"

// find reads the dead letter in the path.
func (v *visit) find(ctx context.Context) (l letterDetail, err error) {
	header, err := v.api.send(ctx, http.MethodGet, v.letterRow(), nil, nil, nil, &l)
	l.etag = header.Get("ETag")
	return l, err
}

// letterRow returns the path of the dead letter in the API.
func (v *visit) letterRow() string {
	return row("dlq", v.r.PathValue("engine"), v.r.PathValue("rowKey"))
}

// letter shows a dead letter.
func letter(ctx context.Context, v *visit) (page, error) {
	l, err := v.find(ctx)
	if err != nil {
		return page{}, err
	}
	p := letterPage{Letter: l, Message: payloadOf(l.OriginalMessage), Sent: payloadOf(l.SentMessage), Held: v.heldOf(l)}
	if done := v.r.URL.Query().Get("done"); done == retry().done || done == expire().done || done == editedDone || slices.ContainsFunc(holdings(), func(h holding) bool { return h.path == done }) {
		p.Done = done
	}
	if l.CorrelationID != "" {
		var runs sync.WaitGroup
		runs.Go(func() { p.Runs = v.askTimeline(ctx, l.CorrelationID, "orchestration") })
		_ = both(func() error {
			same := url.Values{"correlationId": {string(l.CorrelationID)}, "limit": {relatedLimit}}
			p.Related = ask[letterList](ctx, v, access.DeadLettersRead, "/api/dlq", same)
			return nil
		}, func() error {
			same := url.Values{"correlationId": {string(l.CorrelationID)}, "limit": {relatedLimit}}
			p.History = ask[historyList](ctx, v, access.HistoryRead, "/api/history", same)
			return nil
		})
		runs.Wait()
		p.Related.Data.Items = others(p.Related.Data.Items, l)
	}
	return page{template: "letter", title: "Dead letter", model: p,
		elsewhere: v.thing(l.Engine+"/"+l.RowKey, showLine("dlq show", string(l.Engine), string(l.RowKey)))}, nil
}

// others returns the dead letters without this one.
func others(all []letterItem, l letterDetail) (rest []letterItem) {
	for _, i := range all {
		if i.RowKey != l.RowKey || i.Engine != l.Engine {
			rest = append(rest, i)
		}
	}
	return rest
}
