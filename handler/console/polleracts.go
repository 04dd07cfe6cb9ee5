package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/handler/access"
)

// pollerAct is a change of a poller. A separate confirmation page first explains the effect.
type pollerAct struct {
	// name is the last segment of its address and of that of the API, and the verb of the command line.
	name string
	// title is its name, button the label of the button, and said the notice on the page of the poller.
	title, button, said string
	// happens is the effect, and risks are possible losses or repetitions.
	happens, risks string
	// fields are the inputs of the form.
	fields []pollerField
	// refused returns the reason why the poller's state does not allow it, "" if it does.
	refused func(p pollerDetail) string
}

// pollerField is an input.
type pollerField struct {
	// Name is that of the member of the API's body; JSON means that the text is JSON.
	Name, Label string
	JSON, Long  bool
	Required    bool
	// Value is the entered text.
	Value string
}

// pollerActs returns all of them, in the order of the page.
func pollerActs() []pollerAct {
	return []pollerAct{
		{name: "reset-to-cursor", title: "Reset a poller to a place", button: "Reset to a place", said: "The poller goes on behind the place.", refused: notStored,
			happens: "The poller goes on with the first row behind this value, and with keys behind this row. A failure that it stands at is forgotten, and a poller that is retired runs again.",
			risks:   "With a place before the present one, everything between the two comes again. With a later one, the rows between the two are passed over: they are never delivered.",
			fields: []pollerField{{Name: "value", Label: "Value of the cursor column", Required: true},
				{Name: "keys", Label: `Key columns of the last row that is not to be delivered, as JSON, such as {"id": 5}; needed where places have keys`, JSON: true}}},
		{name: "reset-to-checkpoint", title: "Reset a poller to a checkpoint", button: "Reset to a checkpoint", said: "The poller goes on behind the checkpoint.", refused: readable,
			happens: "The poller goes on behind this checkpoint: a state as this page has shown it, or its checkpoint alone. With force it takes that of another poller or definition, and takes the place of a state that is damaged.",
			risks:   "Of a checkpoint before the present place, everything between the two comes again. Of a later one, the rows between the two are never delivered.",
			fields:  []pollerField{{Name: "checkpoint", Label: "State document or checkpoint, as JSON", JSON: true, Long: true, Required: true}}},
		{name: "reset-to-beginning", title: "Reset a poller to the beginning", button: "Reset to the beginning", said: "The poller begins anew.", refused: notStored,
			happens: "The poller begins anew at the first row of its source, with the definition that it has now, and a backfill gets a new end. A poller that is retired runs again.",
			risks:   "Nothing is lost. Every row comes again, with the same event id: engines and the outbox drop what they remember, which is not everything of long ago."},
		{name: "clone-checkpoint", title: "Clone the checkpoint of a poller", button: "Clone the checkpoint", said: "The other poller begins where this one is.", refused: notStored,
			happens: "Another poller, which has no state yet, begins where this one is. This one goes on as before.",
			risks:   "What both deliver comes twice, under different event ids, if both read the same rows: retire this one when the other is to take its place.",
			fields:  []pollerField{{Name: "to", Label: "Name of the other poller", Required: true}}},
		{name: "accept-fingerprint", title: "Accept the changed definition of a poller", button: "Accept the definition", said: "The checkpoint stands for the present definition.", refused: notDefined,
			happens: "The place of the poller counts for the definition that it has now in the settings.",
			risks:   "That is right only if the order of the rows is the same. Rows before the place that another filter or table would have given are never delivered; with another order, rows are lost or come twice: reset the poller then."},
		{name: "break-lease", title: "Break the lease of a poller", button: "Break the lease", said: "Nobody has the lease any more.", refused: notStored,
			happens: "The lease is taken from its owner, and the next tick on any process goes on. That the owner died is noticed by itself, within a lease's time.",
			risks:   "Nothing is lost. An owner who lives on cannot commit any more: the batch that he has in hand comes again."},
		{name: "retire", title: "Retire a poller", button: "Retire", said: "The poller does not run any more.", refused: notRunnable,
			happens: "The poller does not run any more, on any process. Its state stays, with its place and its token; a reset brings it back.",
			risks:   "Nothing is lost while the source keeps its rows. What it has in hand and has not committed comes again when it is brought back."},
	}
}

func readable(pollerDetail) string { return "" }

func notStored(p pollerDetail) string {
	switch p.Condition {
	case "damaged":
		return "Its state cannot be read: reset it to a checkpoint, by force."
	case "new":
		if p.LastBatch == nil && p.Lease.Token == 0 {
			return "It has no state yet."
		}
	}
	return ""
}

func notDefined(p pollerDetail) string {
	if !p.Defined {
		return "The settings of the app do not define it."
	}
	return notStored(p)
}

func notRunnable(p pollerDetail) string {
	if p.Condition == "retired" {
		return "It is retired."
	}
	return notStored(p)
}

// pollerOffer is a change on the page of a poller. Why is the reason why it is unavailable, "" if it is available.
type pollerOffer struct{ Name, Button, Link, Why string }

// pollerActPage asks for confirmation.
type pollerActPage struct {
	Poller                        pollerDetail
	Title, Button, Happens, Risks string
	// Why is the reason why the poller's state does not allow it.
	Why    string
	Fields []pollerField
	// Force means that the form asks whether to continue despite a live lease or a mismatch, and Forced that it was
	// chosen.
	Force, Forced bool
	// Action is the target of the form, and Key makes repeats of the form one change.
	Action, Key string
	command     Text // the same as a command, "" where it needs the input
	// Missing is the permission that the user lacks for it, and Problem the error; "" for none.
	Missing access.Permission
	Problem Text
}

// pageOf returns the confirmation page, with the input of a form.
func (a pollerAct) pageOf(v *visit, p pollerDetail, form url.Values) *pollerActPage {
	out := &pollerActPage{Poller: p, Title: a.title, Button: a.button, Happens: a.happens, Risks: a.risks, Why: a.refused(p), Force: p.Lease.Live || a.name == "reset-to-checkpoint",
		Forced: form.Get("force") == "yes", Action: p.Link() + "/" + a.name, Key: cmp.Or(form.Get("key"), v.console.config.NewKey()), Missing: v.missing(access.PollersChange)}
	for _, f := range a.fields {
		f.Value = lines(form.Get(f.Name))
		out.Fields = append(out.Fields, f)
	}
	if len(a.fields) == 0 {
		out.command = commandLine("roundhouse", "poller", a.name, string(p.Name))
	}
	return out
}

func (p *pollerActPage) shown() page {
	out := page{template: "polleract", title: p.Title, model: p}
	if p.command != "" {
		out.elsewhere = &elsewhere{Command: p.command}
	}
	return out
}

// again returns the page with its error.
func (p *pollerActPage) again(status int, code string, why Text) page {
	p.Problem = why
	out := p.shown()
	out.status, out.code = status, code
	return out
}

// askPoller shows the confirmation page.
func askPoller(a pollerAct) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		p, err := v.findPoller(ctx)
		if err != nil {
			return page{}, err
		}
		return a.pageOf(v, p, nil).shown(), nil
	}
}

// doPoller makes the change, and leads back to the poller. A form that is sent twice makes it once.
func doPoller(a pollerAct) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		form, header, err := v.posted()
		if err != nil {
			return page{}, err
		}
		body, problem := a.body(form)
		if problem == "" || !v.may(access.PollersChange) { // the API reports a missing permission, for any form
			err = v.post(ctx, v.pollerRow()+"/"+a.name, header, body, nil)
			if err == nil {
				return page{to: address(v.pollerLink(), url.Values{"done": {a.name}})}, nil
			}
		}
		refused, ok := asAPIError(err)
		if err != nil && (!ok || refused.Status == http.StatusNotFound) {
			return page{}, err
		}
		p, readErr := v.findPoller(ctx)
		if readErr != nil {
			return page{}, cmp.Or(err, readErr)
		}
		if err == nil {
			return a.pageOf(v, p, form).again(http.StatusBadRequest, "InvalidRequestBody", problem), nil
		}
		return a.pageOf(v, p, form).again(refused.Status, refused.Code, refused.Message), nil
	}
}

// pollerLink returns the address of the page of the poller in the path.
func (v *visit) pollerLink() string { return pollerItem{Name: Text(v.r.PathValue("poller"))}.Link() }

// body returns the API's request body, and the error of the form, "" for none.
func (a pollerAct) body(form url.Values) (body map[string]any, problem Text) {
	body = map[string]any{"force": form.Get("force") == "yes"}
	for _, f := range a.fields {
		value := strings.TrimSpace(form.Get(f.Name))
		switch {
		case value == "" && f.Required:
			problem = Text("Fill in: " + f.Label)
		case value == "":
		case f.JSON && !json.Valid([]byte(value)):
			problem = Text("This is no JSON: " + f.Label)
		case f.JSON:
			body[f.Name] = json.RawMessage(value)
		default:
			body[f.Name] = value
		}
	}
	return body, problem
}

// upperFirst returns a word with a capital.
func upperFirst(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}
