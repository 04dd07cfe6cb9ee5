package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
)

// decision is what can be done with a dead letter. It is first asked for on a page of its own, which says what will happen.
type decision struct {
	// path is the last segment of its address, and done what the page of the dead letter is told.
	path, done string
	// title names it, button is what the button says, and consequence what happens.
	title, button, consequence string
	// notes says that one can give a reason.
	notes bool
	// status is that of a dead letter with which it was done.
	status string
	send   func(ctx context.Context, v *visit, form url.Values, header http.Header) error
}

// retry sends the message again.
func retry() decision {
	return decision{path: "retry", done: "retried", title: "Retry a dead letter", button: "Retry", status: "Resolved",
		consequence: "The original message is sent to its queue again, as it came, and the dead letter becomes Resolved. What the run had already done counts: it goes on from there. If it fails again, another dead letter is made.",
		send: func(ctx context.Context, v *visit, _ url.Values, header http.Header) error {
			_, err := v.api.send(ctx, http.MethodPost, v.letterRow()+"/retry", nil, header, struct{}{}, nil)
			return err
		}}
}

// expire gives it up.
func expire() decision {
	return decision{path: "expire", done: "expired", title: "Expire a dead letter", button: "Expire", status: "Expired", notes: true,
		consequence: "Nothing is sent. The dead letter becomes Expired, and is deleted after the time that expired ones are kept for. Until then it can be made pending again.",
		send: func(ctx context.Context, v *visit, form url.Values, header http.Header) error {
			body := map[string]string{"status": "Expired"}
			if notes := form.Get("notes"); notes != "" {
				body["resolutionNotes"] = notes
			}
			if seen := form.Get("etag"); seen != "" { // what was decided on is what was looked at
				header.Set("If-Match", seen)
			}
			_, err := v.api.send(ctx, http.MethodPatch, v.letterRow(), nil, header, body, nil)
			return err
		}}
}

// decidePage asks whether it is meant.
type decidePage struct {
	Letter                     letterDetail
	Title, Button, Consequence string
	Notes                      bool
	// Action is where the form goes to, ETag the version that was looked at, and Key makes repeats of the form one change.
	Action, ETag, Key string
	// Missing is the permission that whoever looks lacks for it, "" for none.
	Missing access.Permission
	// Settled says that the dead letter is not pending any more.
	Settled bool
}

// confirm is the page that asks.
func confirm(d decision) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		l, err := v.find(ctx)
		if err != nil {
			return page{}, err
		}
		p := decidePage{Letter: l, Title: d.title, Button: d.button, Consequence: d.consequence, Notes: d.notes, Action: l.Link() + "/" + d.path,
			ETag: l.etag, Key: v.console.config.NewKey(), Settled: l.Status != "Pending"}
		if !v.may(access.DeadLettersDecide) {
			p.Missing = access.DeadLettersDecide
		}
		return page{template: "decide", title: d.title, model: p}, nil
	}
}

// decide does it, and leads back to the dead letter. A form that is sent twice has done it once.
func decide(d decision) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if err := v.r.ParseForm(); err != nil {
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
		}
		header := http.Header{}
		if key := v.r.PostForm.Get("key"); key != "" {
			header.Set("Idempotency-Key", key)
		}
		link := letterLink(Text(v.r.PathValue("engine")), Text(v.r.PathValue("rowKey")))
		err := d.send(ctx, v, v.r.PostForm, header)
		if code := status(err); code == http.StatusConflict || code == http.StatusPreconditionFailed {
			if l, readErr := v.find(ctx); readErr == nil && l.Status == d.status {
				err = nil
			}
		}
		if err != nil {
			p := failedPage(err)
			if f, ok := p.model.(failure); ok && p.status != http.StatusNotFound {
				f.Back, f.BackName = link, "the dead letter"
				p.model = f
			}
			return p, nil
		}
		return page{to: link + "?done=" + d.done}, nil
	}
}
