package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// eventDetail is one event of the outbox.
type eventDetail struct {
	eventItem
	IdempotencyKey Text              `json:"idempotencyKey"`
	Error          Text              `json:"error"`
	Destination    Text              `json:"destination"`
	OrderKey       Text              `json:"orderKey"`
	SkippedBy      Text              `json:"skippedBy"`
	DeadLetter     Text              `json:"deadLetter"`
	ProcessedAt    time.Time         `json:"processedAt"`
	NextAttemptAt  time.Time         `json:"nextAttemptAt"`
	DeadAt         time.Time         `json:"deadAt"`
	RevivedAt      time.Time         `json:"revivedAt"`
	WaitsSince     time.Time         `json:"waitsSince"`
	PayloadSize    int               `json:"payloadSize"`
	Payload        json.RawMessage   `json:"payload"`
	Attempts       []deliveryAttempt `json:"attempts"`
}

// deliveryAttempt is one attempt to deliver an event.
type deliveryAttempt struct {
	At          time.Time `json:"at"`
	Node        Text      `json:"node"`
	Destination Text      `json:"destination"`
	TookMs      int64     `json:"tookMs"`
	Status      int       `json:"status"`
	SentAs      Text      `json:"sentAs"`
	Error       Text      `json:"error"`
}

// Took returns its duration.
func (a deliveryAttempt) Took() string { return span(time.Duration(a.TookMs) * time.Millisecond) }

// Letter returns the address of its dead letter, "" without one.
func (e eventDetail) Letter() string {
	if e.DeadLetter == "" {
		return ""
	}
	return letterLink("outbox", e.DeadLetter)
}

// Acts returns its possible actions.
func (e eventDetail) Acts() (can []act) {
	for _, a := range acts() {
		if a.takes(e.State) {
			can = append(can, a)
		}
	}
	return can
}

// seen identifies the displayed life of the event: each restart starts another one.
func (e eventDetail) seen() string {
	if e.RevivedAt.IsZero() {
		return "first"
	}
	return e.RevivedAt.UTC().Format(time.RFC3339Nano)
}

// act is an action on an event. A separate confirmation page first explains the effect.
type act struct {
	// Path is the last segment of its address, and Done the notice on the page of the event.
	Path, Done string
	// Title is its name, Button the label of the button, and Consequence the effect.
	Title, Button, Consequence string
	from                       []string
}

func (a act) takes(status string) bool { return slices.Contains(a.from, status) }

// acts returns all of them. The outbox decides which of them an event allows.
func acts() []act { return []act{retryEvent(), skipEvent(), replayEvent()} }

func retryEvent() act {
	return act{Path: "retry", Title: "Retry an event", Button: "Retry", Done: "The event is due now.", from: []string{"pending", "dead"},
		Consequence: "The event is due at once, whatever it has waited for. If it was dead, its attempts count anew, and its dead letter becomes Resolved."}
}

func skipEvent() act {
	return act{Path: "skip", Title: "Skip an event", Button: "Skip", Done: "The event is skipped: nobody delivers it.", from: []string{"pending", "dead"},
		Consequence: "The event is not delivered, and its dead letter becomes Resolved. It can be replayed as long as it is kept."}
}

func replayEvent() act {
	return act{Path: "replay", Title: "Replay an event", Button: "Replay", Done: "The event is delivered again.", from: []string{"processed", "skipped"},
		Consequence: "The event is delivered again, with the idempotency key that it had. A receiver that has seen that key drops it."}
}

// eventPage is one event, with its attempts.
type eventPage struct {
	Event   eventDetail
	Payload Payload
	// Done is the last action of this page, "" for none.
	Done string
}

// actPage asks for confirmation.
type actPage struct {
	Event eventDetail
	Act   act
	// Action is the target of the form, and Seen the displayed life of the event.
	Action, Seen string
	Missing      access.Permission
	// Settled means that the event's state no longer allows it.
	Settled bool
}

// eventRow returns the API path of the event in the path.
func (v *visit) eventRow() string {
	return row("workflow/outbox", v.r.PathValue("tenant"), v.r.PathValue("id"))
}

func (v *visit) event(ctx context.Context) (e eventDetail, err error) {
	err = v.api.get(ctx, v.eventRow(), nil, &e)
	return e, err
}

// showEvent shows an event.
func showEvent(ctx context.Context, v *visit) (page, error) {
	e, err := v.event(ctx)
	if err != nil {
		return page{}, err
	}
	p := eventPage{Event: e, Payload: payloadOf(string(e.Payload))}
	for _, a := range acts() {
		if a.Path == v.r.URL.Query().Get("done") {
			p.Done = a.Done
		}
	}
	return page{template: "event", title: "Event", model: p, elsewhere: v.thing(e.ID, showLine("outbox show", string(e.TenantID), string(e.ID)))}, nil
}

// askAct shows the confirmation page.
func askAct(a act) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		e, err := v.event(ctx)
		if err != nil {
			return page{}, err
		}
		p := actPage{Event: e, Act: a, Action: e.Link() + "/" + a.Path, Seen: e.seen(), Settled: !a.takes(e.State)}
		if !v.may(access.OutboxDecide) {
			p.Missing = access.OutboxDecide
		}
		return page{template: "eventact", title: a.Title, model: p}, nil
	}
}

// doAct does it, and leads back to the event. A form that is sent twice does it once: the second finds the event in
// another life, or settled.
func doAct(a act) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if err := v.r.ParseForm(); err != nil {
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
		}
		link := eventLink(Text(v.r.PathValue("tenant")), Text(v.r.PathValue("id")))
		done := page{to: address(link, url.Values{"done": {a.Path}})}
		if !v.may(access.OutboxDecide) { // the API reports and records it
			_, err := v.api.send(ctx, http.MethodPost, v.eventRow()+"/"+a.Path, nil, nil, struct{}{}, nil)
			return backTo(failedPage(err), link, "the event"), nil
		}
		e, err := v.event(ctx)
		if err != nil {
			return page{}, err
		}
		seen := v.r.PostForm.Get("seen")
		skips := a.Path == skipEvent().Path
		switch {
		case seen == "":
			return backTo(refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form does not say what was looked at. Open the page again, and send its form from there."), link, "the event"), nil
		case skips && e.State == "skipped":
			return done, nil
		case e.seen() != seen && skips:
			return backTo(refusedPage(http.StatusPreconditionFailed, "PreconditionFailed", "The event was let start over since you looked at it."), link, "the event"), nil
		case e.seen() != seen:
			return done, nil
		}
		if _, err := v.api.send(ctx, http.MethodPost, v.eventRow()+"/"+a.Path, nil, nil, struct{}{}, nil); err != nil {
			return backTo(failedPage(err), link, "the event"), nil
		}
		return done, nil
	}
}
