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
	// PollSoon is after how long the page of an operation that is young asks again, and PollLater of one that is not: each tab
	// that is open costs a transaction then.
	PollSoon, PollLater = 3 * time.Second, 15 * time.Second
	// young is for how long it is, and watched for how long the page asks again at all.
	young, watched = time.Minute, 24 * time.Hour
)

// operation is work on many things, as the API tells of it.
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

// What is what the operation works on.
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

// Ended says whether nothing more comes of it.
func (o operation) Ended() bool { return !o.EndedAt.IsZero() }

// Handled is how many things it has come by.
func (o operation) Handled() int { return o.Progress.Done + o.Progress.PassedOver }

// Back is the address of the dead letters that came back since it began, "" where none can have.
func (o operation) Back() string {
	if o.What() != "dead letters" || o.Request.Action != "retry" {
		return ""
	}
	return address(lettersPath, url.Values{"engine": {string(o.Request.Engine)}, "instanceId": {string(o.Request.InstanceID)}, "fromDate": {o.CreatedAt.UTC().Format(time.RFC3339)}})
}

// Timeline is the address of what the log and the audit log have it under.
func (o operation) Timeline() string { return timelineOf(o.CorrelationID) }

// Paused says whether it does nothing until somebody resumes or cancels it.
func (o operation) Paused() bool { return o.Status == "Paused" }

func operationLink(id Text) string { return operationsPath + "/" + urlpath.Escape(string(id)) }

// operationPage is how far an operation is.
type operationPage struct {
	Operation operation
	// Of is how many there were when somebody decided on it, as the address has it; 0 where that is not known.
	Of int
	// Every is after how long the browser asks again, "" where it does not. Still and Live are this page without and with that.
	Every       string
	Still, Live string
	// Commands are what can be done with it.
	Commands []operationCommand
}

// operationCommand is a button on the page of an operation.
type operationCommand struct{ Path, Button, Consequence string }

// operationCommands are what can be done with an operation as it is.
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

// Most is how many there are at least, for the bar.
func (p operationPage) Most() int { return max(p.Of, p.Operation.Handled()) }

// still is the value of refresh in the address with which a page stays as it is.
const still = "off"

// showOperation shows how far an operation is. While there is more to come, the browser asks again by itself, unless the address
// says that it is not to.
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

// refreshAfter is after how long to look at an operation again, 0 for not by itself: what has ended, or cannot go on as it is, or
// has run for so long that nobody waits for it, or is paused, unless it was asked to resume just now.
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

// operationRow is the path of the operation in the API.
func (v *visit) operationRow() string {
	return "/api/operations/" + urlpath.Escape(v.r.PathValue("operation"))
}

// commandOperation sends a command to an operation, and leads back to it. One that has ended already is left as it is.
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
