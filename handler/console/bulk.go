package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	retryAllPath  = lettersPath + "/retry"
	expireAllPath = lettersPath + "/expire"
)

const (
	// mostCauses is the most causes that the API returns.
	mostCauses = 100
	// firstTries is the number of dead letters that a form offers to send first, and firstSeconds the wait for them.
	firstTries, firstSeconds = 5, 60
)

// sweep is an action on all dead letters of a filter. Its confirmation page shows their number, and it runs as an
// operation.
type sweep struct {
	path, title, button, consequence string
	// canary means that some can go first.
	canary bool
	body   map[string]any
}

// retryAll resends the messages.
func retryAll() sweep {
	return sweep{path: retryAllPath, title: "Retry dead letters", button: "Retry all", canary: true,
		consequence: "The original messages are sent to their queues again, as they came, and the dead letters become Resolved. Those that fail again become other dead letters."}
}

// expireAll abandons them.
func expireAll() sweep {
	return sweep{path: expireAllPath, title: "Expire dead letters", button: "Expire all", body: map[string]any{"olderThanDays": 0},
		consequence: "Nothing is sent. The dead letters become Expired, and are deleted after the time that expired ones are kept for. Until then each can be made pending again."}
}

// bulkFields are the parts of a filter that an operation accepts.
func bulkFields() []string { return []string{"engine", "instanceId", "errorSignature", "fromDate"} }

// bulkPage asks for confirmation.
type bulkPage struct {
	Title, Button, Consequence string
	Filter                     filter
	// Count is the number of dead letters, and AtLeast means that more may exist.
	Count   int
	AtLeast bool
	// Selected are the selected dead letters, in place of a filter.
	Selected []selected
	// Until is the latest end of the filter: later failures are excluded.
	Until  Text
	Frozen bool
	// Canary means that the form offers to send some first, Tries their number and Seconds the wait; Tries is 0 for none.
	Canary         bool
	Tries, Seconds int
	// Action is the target of the form, Back the list, and Key makes repeats of the form one operation.
	Action, Back, Key string
	Missing           access.Permission
}

// sweepable returns the reason why a filter cannot be that of an operation, "" if it can.
func sweepable(f filter) Text {
	switch {
	case f.Status != "Pending":
		return "Only pending dead letters are retried and expired. Choose the status Pending."
	case f.Assignee != "":
		return "What somebody takes care of is not retried or expired by that: select it on the list, or take that out of the filter."
	case f.CorrelationID != "":
		return "What has one correlation id is decided on one by one. Take it out of the filter."
	default:
		return ""
	}
}

// askAll shows the confirmation page.
func askAll(s sweep) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		f := filterOf(v.r.URL.Query())
		if why := sweepable(f); why != "" {
			return backTo(refusedPage(http.StatusBadRequest, "InvalidParameter", why), f.List(), "the list"), nil
		}
		p := bulkPage{Title: s.title, Button: s.button, Consequence: s.consequence, Filter: f, Canary: s.canary, Action: s.path, Back: f.List(), Key: v.console.config.NewKey()}
		var all causesList
		query := f.without("errorSignature")
		query.Set("limit", strconv.Itoa(mostCauses))
		if err := v.api.get(ctx, "/api/dlq/groups", query, &all); err != nil {
			return page{}, err
		}
		p.Count, p.AtLeast = all.count(f.Signature)
		p.Until, p.Frozen = frozen(f.To, v.console.config.Now())
		if s.canary && (p.Count > firstTries || p.AtLeast) {
			p.Tries, p.Seconds = firstTries, firstSeconds
		}
		if !v.may(access.DeadLettersBulk) {
			p.Missing = access.DeadLettersBulk
		}
		return page{template: "bulk", title: s.title, model: p}, nil
	}
}

// count returns the number of dead letters of a cause, or of all for "", and whether more may exist.
func (l causesList) count(signature string) (n int, atLeast bool) {
	for _, c := range l.Items {
		if signature == "" || string(c.Signature) == signature {
			n += c.Count
		}
	}
	return n, !l.Complete || len(l.Items) == mostCauses
}

// frozen returns the end of a filter, now at the latest, so that it keeps its displayed meaning. The API reports an
// unreadable time.
func frozen(until string, now time.Time) (Text, bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, until); err == nil && at.After(now) {
			until = ""
		}
	}
	if until != "" {
		return Text(until), false
	}
	return Text(now.UTC().Format(time.RFC3339Nano)), true
}

// startAll starts the operation, and leads to its page. A form that is sent twice starts one.
func startAll(s sweep) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if err := v.r.ParseForm(); err != nil {
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
		}
		form := v.r.PostForm
		back, from := url.Values{}, s.path
		body := map[string]any{}
		chosen, ok := selection(form["row"])
		switch {
		case !ok:
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "This was sent by no page of the console. Open the list again, and select from there."), nil
		case len(chosen) > 0:
			body["rows"], from = rows(chosen), lettersPath
		}
		for _, name := range bulkFields() {
			if value := form.Get(name); value != "" {
				body[name] = value
				back.Set(name, value)
			}
		}
		if until := form.Get("toDate"); until != "" { // without it, the form is not from the confirmation page, and the API refuses it
			body["toDate"] = until
			for name, value := range s.body {
				body[name] = value
			}
		}
		for _, name := range []string{"ratePerSecond", "canary", "canarySeconds"} {
			value := form.Get(name)
			if value == "" || name == "canarySeconds" && form.Get("canary") == "" {
				continue
			}
			n, err := strconv.Atoi(value)
			if err != nil {
				return backTo(refusedPage(http.StatusBadRequest, "InvalidRequestBody", Text(name)+": Use a whole number."), address(from, back), "the form"), nil
			}
			body[name] = n
		}
		return v.operate(ctx, "/api/dlq/"+s.path[len(lettersPath)+1:], body, form, address(from, back))
	}
}

// operate starts an operation with the values of a form, and leads to its page.
func (v *visit) operate(ctx context.Context, api string, body map[string]any, form url.Values, back string) (page, error) {
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	var started operation
	if _, err := v.api.send(ctx, http.MethodPost, api, nil, header, body, &started); err != nil {
		return backTo(failedPage(err), back, "the form"), nil
	}
	return page{to: address(operationLink(started.ID), url.Values{"of": {counted(form.Get("of"))}})}, nil
}

// counted returns a text if it is a valid number of dead letters, or "".
func counted(text string) string {
	if n, err := strconv.Atoi(text); err != nil || n <= 0 {
		return ""
	}
	return text
}

// backTo adds a link back to a page with an error.
func backTo(p page, address, name string) page {
	if f, ok := p.model.(failure); ok {
		f.Back, f.BackTo = address, name
		p.model = f
	}
	return p
}

// RetryAll returns the address of the confirmation for all dead letters of the filter, "" where that is impossible.
func (f filter) RetryAll() string { return f.all(retryAllPath) }

// ExpireAll returns the same for expiring them.
func (f filter) ExpireAll() string { return f.all(expireAllPath) }

func (f filter) all(path string) string {
	if sweepable(f) != "" {
		return ""
	}
	return address(path, f.without("status"))
}
