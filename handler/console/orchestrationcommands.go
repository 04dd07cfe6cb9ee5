package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// command is a command to an orchestration. A separate confirmation page first explains the effect.
type command struct {
	// name is the last segment of its address, and the verb of the command line.
	name string
	// title is its name, button the label of the button, and consequence the effect.
	title, button, consequence string
	need                       access.Permission
	// reason and event are the inputs of the form: a reason, or the name and value of an event.
	reason, event bool
	// refused returns the reason why the state of an orchestration does not allow it, "" if it does.
	refused func(o orchestrationDetail) string
	// status is the resulting status of an orchestration, "" where none shows it.
	status string
}

// commands returns all of them, in the order of the page.
func commands() []command {
	may := access.OrchestrationsCommand
	return []command{
		{name: "suspend", title: "Suspend an orchestration", button: "Suspend", need: may, reason: true, refused: notSuspendable,
			consequence: "It decides nothing and begins nothing new, further attempts included, until somebody resumes it. Activities that are running end, and what comes meanwhile is kept for it. The time that it may take goes on."},
		{name: "resume", title: "Resume an orchestration", button: "Resume", need: may, reason: true, refused: notResumable,
			consequence: "It goes on where it stood, with everything that has come meanwhile."},
		{name: "cancel", title: "Cancel an orchestration", button: "Cancel it", need: may, reason: true, refused: hasEnded, status: "Canceled",
			consequence: "It is asked to end: everything that it waits for or calls gives an error to its code, which can undo what is half done. This cannot be taken back. It ends as Canceled, or as Failed if cleaning up fails."},
		{name: "terminate", title: "Terminate an orchestration", button: "Terminate", need: may, reason: true, refused: hasEnded, status: "Terminated",
			consequence: "It ends at once. None of its code runs any more, so nothing is undone: what it has done so far stays as it is. This cannot be taken back."},
		{name: "rewind", title: "Rewind an orchestration", button: "Rewind", need: may, reason: true, refused: notFailed,
			consequence: "It makes another attempt. Results of calls that completed are kept, if it failed because a call did and it did nothing afterwards; otherwise it begins anew, and does everything again."},
		{name: "restart", title: "Restart an orchestration", button: "Restart", need: may, reason: true, refused: notEnded,
			consequence: "It begins anew under the same id, with its original input, and does everything again: nothing of what it did before is remembered."},
		{name: "raise", title: "Raise an event", button: "Raise the event", need: access.OrchestrationsSend, event: true, refused: hasEnded,
			consequence: "The event is handed to the orchestration, and kept until its code asks for one of this name."},
		{name: "purge", title: "Purge an orchestration", button: "Purge", need: access.OrchestrationsPurge, refused: notEnded,
			consequence: "Everything of it is deleted: its rounds, its input and its output, and the orchestrations that it waited for. Dead letters, the history and the audit log stay. This cannot be taken back."},
	}
}

// commandOf returns the command of a name.
func commandOf(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

func hasEnded(o orchestrationDetail) string {
	if o.Ended() {
		return "It has ended."
	}
	return ""
}

func notEnded(o orchestrationDetail) string {
	if !o.Ended() {
		return "It has not ended."
	}
	return ""
}

func notFailed(o orchestrationDetail) string {
	if !o.Ended() || o.Status != "Failed" {
		return "It has not failed."
	}
	return ""
}

func notSuspendable(o orchestrationDetail) string {
	if o.Status == "Suspended" {
		return "It is suspended already."
	}
	return hasEnded(o)
}

// notResumable allows the resume of one that is between two attempts, or whose code cannot continue: it may be
// suspended as well.
func notResumable(o orchestrationDetail) string {
	if !o.Ended() && o.Status != "Suspended" && o.Status != "Retrying" && o.Status != "Stalled" {
		return "It is not suspended."
	}
	return hasEnded(o)
}

// later returns when a command takes effect, if not as soon as the orchestration receives it.
func (c command) later(o orchestrationDetail) string {
	switch {
	case o.Ended() || c.name == "terminate":
		return ""
	case o.Status == "Stalled":
		return "It is stalled: this takes effect when its code can go on. Terminate ends it at once."
	case o.Status == "Retrying" && c.name != "cancel":
		return "An attempt has failed: this is for the next one."
	default:
		return ""
	}
}

// commandOffer is a command on the page of an orchestration: Why is the reason why it cannot be sent, and Missing the
// permission that the user lacks for it; "" if it can be.
type commandOffer struct {
	Name, Button, Link, Why string
	Missing                 access.Permission
}

// offers returns the commands for the page of an orchestration.
func offers(o orchestrationDetail, v *visit) (all []commandOffer) {
	for _, c := range commands() {
		all = append(all, commandOffer{c.name, c.button, o.Link() + "/" + c.name, c.refused(o), v.missing(c.need)})
	}
	return all
}

// missing returns the permission if the user lacks it, otherwise "".
func (v *visit) missing(need access.Permission) access.Permission {
	if v.may(need) {
		return ""
	}
	return need
}

// commandPage asks for confirmation.
type commandPage struct {
	Run                        orchestrationDetail
	Title, Button, Consequence string
	// Later is when it takes effect, if not immediately. Why is the reason why the state does not allow it.
	Later, Why string
	// Reason and Event are the inputs of the form; Name and Value are the entered event, and Problem is its error.
	Reason, Event bool
	Name, Value   string
	Problem       Text
	// Action is the target of the form, ETag the displayed version, and Key makes repeats of the form one change.
	Action, ETag, Key string
	// Missing is the permission that the user lacks for it, "" for none.
	Missing access.Permission
}

// commandPageOf returns the page for a command to an orchestration.
func (v *visit) commandPageOf(c command, o orchestrationDetail) commandPage {
	return commandPage{Run: o, Title: c.title, Button: c.button, Consequence: c.consequence, Later: c.later(o), Why: c.refused(o),
		Reason: c.reason, Event: c.event, Action: o.Link() + "/" + c.name, ETag: o.etag, Key: v.console.config.NewKey(), Missing: v.missing(c.need)}
}

// confirmCommand shows the confirmation page.
func confirmCommand(c command) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		o, err := v.findOrchestration(ctx)
		if err != nil {
			return page{}, err
		}
		p := v.commandPageOf(c, o)
		out := page{template: "command", title: c.title, model: p}
		if p.Why == "" && !c.event { // that of an event lacks the values to enter
			out.elsewhere = &elsewhere{Command: orchestrationLine(c.name, string(o.ID))}
		}
		return out, nil
	}
}

// sendCommand sends the command, and leads back to the orchestration, or to the list. A form that is sent twice sends
// it once.
func sendCommand(c command) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if err := v.r.ParseForm(); err != nil {
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
		}
		if problem := c.problem(v.r.PostForm); problem != "" && v.may(c.need) {
			return v.askAgain(ctx, c, problem)
		}
		err := c.send(ctx, v)
		if status(err) == http.StatusConflict && c.status != "" {
			if o, readErr := v.findOrchestration(ctx); readErr == nil && o.Status == c.status {
				err = nil
			}
		}
		link := orchestrationLink(Text(v.r.PathValue("id")))
		switch {
		case err != nil:
			p := failedPage(err)
			if f, ok := p.model.(failure); ok && p.status != http.StatusNotFound {
				f.Back, f.BackTo = link, "the orchestration"
				p.model = f
			}
			return p, nil
		case c.name == "purge":
			return page{to: address(orchestrationsPath, url.Values{"done": {purged}})}, nil
		default:
			return page{to: address(link, url.Values{"done": {c.name}})}, nil
		}
	}
}

// problem returns the error of a form, "" for none.
func (c command) problem(form url.Values) Text {
	switch value := form.Get("value"); {
	case !c.event:
		return ""
	case form.Get("name") == "":
		return "Say what the event is called, as the code of the orchestration asks for it."
	case value != "" && !json.Valid([]byte(value)):
		return `The value is no JSON. Write a text with quotes, such as "yes"; a number, true, false or null without.`
	default:
		return ""
	}
}

// askAgain shows the form with the entered values, and their error.
func (v *visit) askAgain(ctx context.Context, c command, problem Text) (page, error) {
	o, err := v.findOrchestration(ctx)
	if err != nil {
		return page{}, err
	}
	p := v.commandPageOf(c, o)
	p.Name, p.Value, p.Problem = v.r.PostForm.Get("name"), v.r.PostForm.Get("value"), problem
	if key := v.r.PostForm.Get("key"); key != "" {
		p.Key = key
	}
	return page{template: "command", title: c.title, status: http.StatusBadRequest, code: "InvalidRequestBody", model: p}, nil
}

// send sends it to the API.
func (c command) send(ctx context.Context, v *visit) error {
	form, header := v.r.PostForm, http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	method, path, body := http.MethodPost, v.orchestrationRow()+"/"+c.name, any(struct{}{})
	switch {
	case c.event: // a form with an error gets here only from a user without the permission, which the API reports
		path = v.orchestrationRow() + "/events/" + urlpath.Escape(cmp.Or(form.Get("name"), "-"))
		body = json.RawMessage("null")
		if value := []byte(form.Get("value")); json.Valid(value) {
			body = json.RawMessage(value)
		}
	case c.name == "purge":
		method, path, body = http.MethodDelete, v.orchestrationRow(), nil
		if seen := form.Get("etag"); seen != "" { // the purge affects the displayed version
			header.Set("If-Match", seen)
		}
	case form.Get("reason") != "":
		body = map[string]string{"reason": form.Get("reason")}
	}
	_, err := v.api.send(ctx, method, path, nil, header, body, nil)
	return err
}

// commandRoutes are the confirmation pages of commands, and the targets of their forms.
func commandRoutes() (routes []route) {
	for _, c := range commands() {
		path := orchestrationPath + "/" + c.name
		routes = append(routes, routeOf(http.MethodGet, path, access.OrchestrationsRead, confirmCommand(c)), routeOf(http.MethodPost, path, c.need, sendCommand(c)))
	}
	return routes
}

// orchestrationRoutes are the pages of orchestrations.
func orchestrationRoutes() []route {
	return append([]route{
		routeOf(http.MethodGet, orchestrationsPath, access.OrchestrationsRead, orchestrations),
		routeOf(http.MethodGet, orchestrationPath, access.OrchestrationsRead, orchestration),
	}, slices.Concat(commandRoutes(), startRoutes(), historyRoutes(), purgeRoutes())...)
}
