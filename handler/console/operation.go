package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/internal/urlpath"
)

const operationPath = operationsPath + "/:operation"

const (
	// PollSoon is the polling interval of the page of a young operation, and PollLater that of an older one: each poll of
	// an open tab costs a transaction.
	PollSoon, PollLater = 3 * time.Second, 15 * time.Second
	// young is the age limit of a young operation, and watched the age up to which the page polls at all.
	young, watched = time.Minute, 24 * time.Hour
)

// operation is an API operation on many objects.
type operation struct {
	ID            Text      `json:"id"`
	Kind          string    `json:"kind"`
	Status        string    `json:"status"`
	CorrelationID Text      `json:"correlationId"`
	CreatedAt     time.Time `json:"createdAt"`
	LastUpdatedAt time.Time `json:"lastUpdatedAt"`
	EndedAt       time.Time `json:"endedAt"`
	Request       struct {
		Action         Text      `json:"action"`
		Status         Text      `json:"status"`
		Tenant         Text      `json:"tenant"`
		EventType      Text      `json:"eventType"`
		CorrelationID  Text      `json:"correlationId"`
		Engine         Text      `json:"engine"`
		InstanceID     Text      `json:"instanceId"`
		ErrorSignature Text      `json:"errorSignature"`
		Orchestrator   Text      `json:"orchestrator"`
		IDPrefix       Text      `json:"idPrefix"`
		From           time.Time `json:"fromDate"`
		To             time.Time `json:"toDate"`
		CreatedTo      time.Time `json:"createdTo"`
		OlderThanDays  int       `json:"olderThanDays"`
		Selected       int       `json:"selected"`
		By             Text      `json:"by"`
		RatePerSecond  int       `json:"ratePerSecond"`
		Canary         int       `json:"canary"`
		CanarySeconds  int       `json:"canarySeconds"`
	} `json:"request"`
	Progress struct {
		Done       int `json:"done"`
		PassedOver int `json:"passedOver"`
		Returned   int `json:"returned"`
	} `json:"progress"`
	Error *struct {
		Code    string `json:"code"`
		Message Text   `json:"message"`
	} `json:"error"`
}

// What returns the objects of the operation.
func (o operation) What() string {
	switch o.Kind {
	case "dead-letter-bulk":
		return "dead letters"
	case "outbox-bulk":
		return "events of the outbox"
	case "orchestration-bulk":
		return "orchestrations"
	default:
		return o.Kind
	}
}

// Ended reports whether it has ended.
func (o operation) Ended() bool { return !o.EndedAt.IsZero() }

// Handled returns the number of objects it has handled.
func (o operation) Handled() int { return o.Progress.Done + o.Progress.PassedOver }

// Back returns the address of the dead letters that failed again since it started, "" where none can have.
func (o operation) Back() string {
	if o.What() != "dead letters" || o.Request.Action != "retry" {
		return ""
	}
	return address(lettersPath, url.Values{"engine": {string(o.Request.Engine)}, "instanceId": {string(o.Request.InstanceID)}, "fromDate": {o.CreatedAt.UTC().Format(time.RFC3339)}})
}

// Timeline returns the address of its correlation id in the timeline.
func (o operation) Timeline() string { return timelineOf(o.CorrelationID) }

// Paused reports whether it waits until it is resumed or canceled.
func (o operation) Paused() bool { return o.Status == "Paused" }

func operationLink(id Text) string { return operationsPath + "/" + urlpath.Escape(string(id)) }

// operationPage is the progress of an operation.
type operationPage struct {
	Operation operation
	// Of is the displayed number of objects at its start, from the address; 0 if unknown.
	Of int
	// Every is the browser's polling interval, "" for none. Still and Live are the addresses of this page without and with
	// polling.
	Every       string
	Still, Live string
	// Commands are its possible commands.
	Commands []operationCommand
}

// operationCommand is a button on the page of an operation.
type operationCommand struct{ Path, Button, Consequence string }

// operationCommands returns the possible commands of an operation.
func operationCommands(o operation) []operationCommand {
	link := operationLink(o.ID)
	pause := operationCommand{link + "/pause", "Pause", "It finishes what it has in hand, a hundred at most, and goes on when it is resumed."}
	if o.Paused() {
		pause = operationCommand{link + "/resume", "Resume", "It goes on where it was."}
	}
	if o.Ended() {
		return nil
	}
	return []operationCommand{pause, {link + "/cancel", "Cancel the operation", "What is done stays done; the rest is left alone."}}
}

// Most returns the minimum number of objects, for the bar.
func (p operationPage) Most() int { return max(p.Of, p.Operation.Handled()) }

// still is the value of refresh in the address that turns polling off.
const still = "off"

// showOperation shows the progress of an operation. The browser polls until its end, unless the address turns that off.
func showOperation(ctx context.Context, v *visit) (page, error) {
	p := operationPage{}
	if err := v.api.get(ctx, v.operationRow(), nil, &p.Operation); err != nil {
		return page{}, err
	}
	query := v.r.URL.Query()
	of := counted(query.Get("of"))
	p.Of, _ = strconv.Atoi(of)
	link := operationLink(p.Operation.ID)
	out := page{template: "operation", title: "Operation", elsewhere: v.thing(p.Operation.ID, showLine("operation show", string(p.Operation.ID)))}
	if pause := refreshAfter(p.Operation, query.Get("asked") == "resume", v.console.config.Now()); pause > 0 {
		p.Live = address(link, url.Values{"of": {of}})
		if query.Get("refresh") != still {
			out.refresh, p.Every = pause, span(pause)
			p.Still = address(link, url.Values{"of": {of}, "refresh": {still}})
		}
	}
	p.Commands = operationCommands(p.Operation)
	out.model = p
	return out, nil
}

// refreshAfter returns the polling interval of an operation, 0 for none. Ended, stuck, very old and paused operations
// are not polled, except when a resume was just requested.
func refreshAfter(o operation, resumed bool, now time.Time) time.Duration {
	age := now.Sub(o.CreatedAt)
	switch {
	case o.Ended() || o.Error != nil || age > watched || o.Paused() && !resumed:
		return 0
	case o.Paused():
		return PollSoon
	case age < young:
		return PollSoon
	default:
		return PollLater
	}
}

// operationRow returns the path of the operation in the API.
func (v *visit) operationRow() string {
	return "/api/operations/" + urlpath.Escape(v.r.PathValue("operation"))
}

// commandOperation sends a command to an operation, and leads back to it. An ended one is unchanged.
func commandOperation(name string) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if err := v.r.ParseForm(); err != nil {
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
		}
		query := url.Values{"of": {counted(v.r.PostForm.Get("of"))}}
		if name == "resume" {
			query.Set("asked", name)
		}
		back := address(operationLink(Text(v.r.PathValue("operation"))), query)
		_, err := v.api.send(ctx, http.MethodPost, v.operationRow()+"/"+name, nil, nil, struct{}{}, nil)
		if code := status(err); err != nil && code != http.StatusConflict {
			p := failedPage(err)
			if code != http.StatusNotFound {
				p = backTo(p, back, "the operation")
			}
			return p, nil
		}
		return page{to: back}, nil
	}
}
