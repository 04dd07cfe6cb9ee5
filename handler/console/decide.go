package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
)

// decision is an action on a dead letter. A separate confirmation page first explains the effect.
type decision struct {
	// path is the last segment of its address, and done the notice on the page of the dead letter.
	path, done string
	// title is its name, button the label of the button, and consequence the effect.
	title, button, consequence string
	// notes means that a reason can be given.
	notes bool
	// status is the resulting status of a dead letter.
	status string
	send   func(ctx context.Context, v *visit, form url.Values, header http.Header) error
}

// retry resends the message.
func retry() decision {
	return decision{path: "retry", done: "retried", title: "Retry a dead letter", button: "Retry", status: "Resolved",
		consequence: "The original message is sent to its queue again, as it came, and the dead letter becomes Resolved. What the run had already done counts: it goes on from there. If it fails again, another dead letter is made.",
		send: func(ctx context.Context, v *visit, _ url.Values, header http.Header) error {
			_, err := v.api.send(ctx, http.MethodPost, v.letterRow()+"/retry", nil, header, struct{}{}, nil)
			return err
		}}
}

// expire abandons it.
func expire() decision {
	return decision{path: "expire", done: "expired", title: "Expire a dead letter", button: "Expire", status: "Expired", notes: true,
		consequence: "Nothing is sent. The dead letter becomes Expired, and is deleted after the time that expired ones are kept for. Until then it can be made pending again.",
		send: func(ctx context.Context, v *visit, form url.Values, header http.Header) error {
			body := map[string]string{"status": "Expired"}
			if notes := form.Get("notes"); notes != "" {
				body["resolutionNotes"] = notes
			}
			if seen := form.Get("etag"); seen != "" { // the decision is about the displayed version
				header.Set("If-Match", seen)
			}
			_, err := v.api.send(ctx, http.MethodPatch, v.letterRow(), nil, header, body, nil)
			return err
		}}
}

// decidePage asks for confirmation.
type decidePage struct {
	Letter                     letterDetail
	Title, Button, Consequence string
	Notes                      bool
	// Action is the target of the form, ETag the displayed version, and Key makes repeats of the form one change.
	Action, ETag, Key string
	// Missing is the permission that the user lacks for it, "" for none.
	Missing access.Permission
	// Settled means that the dead letter is no longer pending.
	Settled bool
}

// confirm shows the confirmation page.
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

// decide makes the decision, and leads back to the dead letter. A form that is sent twice makes one.
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
				f.Back, f.BackTo = link, "the dead letter"
				p.model = f
			}
			return p, nil
		}
		return page{to: link + "?done=" + d.done}, nil
	}
}
