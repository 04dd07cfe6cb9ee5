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
	// mostCauses is how many causes the API tells of at most.
	mostCauses = 100
	// firstTries is how many a form offers to send first where there are more, and firstSeconds how long to wait for them.
	firstTries, firstSeconds = 5, 60
)

// sweep is what can be done with all dead letters that a filter means. It is asked for on a page that says how many they are, and
// goes on as an operation.
type sweep struct {
	path, title, button, consequence string
	// canary says that some can go first.
	canary bool
	body   map[string]any
}

// retryAll sends the messages again.
func retryAll() sweep {
	return sweep{path: retryAllPath, title: "Retry dead letters", button: "Retry all", canary: true,
		consequence: "The original messages are sent to their queues again, as they came, and the dead letters become Resolved. Those that fail again become other dead letters."}
}

// expireAll gives them up.
func expireAll() sweep {
	return sweep{path: expireAllPath, title: "Expire dead letters", button: "Expire all", body: map[string]any{"olderThanDays": 0},
		consequence: "Nothing is sent. The dead letters become Expired, and are deleted after the time that expired ones are kept for. Until then each can be made pending again."}
}

// bulkFields are the parts of a filter that an operation takes.
func bulkFields() []string { return []string{"engine", "instanceId", "errorSignature", "fromDate"} }

// bulkPage asks whether it is meant.
type bulkPage struct {
	Title, Button, Consequence string
	Filter                     filter
	// Count is how many the filter means, and AtLeast that there may be more.
	Count   int
	AtLeast bool
	// Selected are those that are meant in place of a filter.
	Selected []selected
	// Until is where the filter ends at the latest: what fails after the page was made is not meant.
	Until  Text
	Frozen bool
	// Canary says that the form offers to send some first, Tries how many and Seconds how long to wait; Tries is 0 for none.
	Canary         bool
	Tries, Seconds int
	// Action is where the form goes to, Back the list, and Key makes repeats of the form one operation.
	Action, Back, Key string
	Missing           access.Permission
}

// sweepable says why a filter cannot be one of an operation, "" if it can.
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

// askAll is the page that asks.
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

// count is how many dead letters there are of a cause, or of all for "", and whether there may be more.
func (l causesList) count(signature string) (n int, atLeast bool) {
	for _, c := range l.Items {
		if signature == "" || string(c.Signature) == signature {
			n += c.Count
		}
	}
	return n, !l.Complete || len(l.Items) == mostCauses
}

// frozen is the end of a filter at the latest now, so that it goes on meaning what somebody has looked at. A time that cannot be
// read stays, for the API to say so.
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

// startAll starts the operation, and leads to its page. A form that is sent twice has started one.
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
		if until := form.Get("toDate"); until != "" { // without one, it was no form of the page that asks, and the API refuses it
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

// operate starts an operation with what a form says, and leads to its page.
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

// counted is a text if it is a number that can be how many there are, or "".
func counted(text string) string {
	if n, err := strconv.Atoi(text); err != nil || n <= 0 {
		return ""
	}
	return text
}

// backTo gives a page that says why nothing was done a way back.
func backTo(p page, address, name string) page {
	if f, ok := p.model.(failure); ok {
		f.Back, f.BackTo = address, name
		p.model = f
	}
	return p
}

// RetryAll and ExpireAll are the addresses that ask what is to be done with all that the filter means, "" where that cannot be.
func (f filter) RetryAll() string { return f.all(retryAllPath) }

// ExpireAll is the same for giving them up.
func (f filter) ExpireAll() string { return f.all(expireAllPath) }

func (f filter) all(path string) string {
	if sweepable(f) != "" {
		return ""
	}
	return address(path, f.without("status"))
}
