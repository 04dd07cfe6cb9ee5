package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
)

// confirmPage asks whether something is meant that is done to a part of the app. It keeps what was entered when the API refuses it.
type confirmPage struct {
	Title, Button, Consequence string
	// What is what it is done to, and Back the address to go back to.
	What Text
	Back string
	// Action is where the form goes to, ETag the version that was looked at, and Key makes repeats of the form one change.
	Action, ETag, Key string
	// Durations are for how long it is done, where that is entered, and HasReason says that a reason is.
	Durations []duration
	HasReason bool
	Reason    string
	// Missing is the permission that whoever looks lacks for it, and Problem why it was not done; "" for none.
	Missing access.Permission
	Problem Text
}

// duration is one that can be chosen.
type duration struct {
	Seconds  string
	Label    string
	Selected bool
}

// shown is the page of it.
func (p *confirmPage) shown() page { return page{template: "confirm", title: p.Title, model: p} }

// need notes whether whoever looks has the permission for it.
func (p *confirmPage) need(v *visit, need access.Permission) {
	if !v.may(need) {
		p.Missing = need
	}
}

// outcome leads on after it was done, or shows the form again with what the API has against it.
func (p *confirmPage) outcome(err error, to string) (page, error) {
	refused, ok := asAPIError(err)
	switch {
	case err == nil:
		return page{to: to}, nil
	case !ok || refused.Status == http.StatusNotFound:
		return page{}, err
	}
	p.Problem = refused.Message
	out := p.shown()
	out.status, out.code = refused.Status, refused.Code
	return out, nil
}

// posted is what a form has sent, with the headers that make it one change of what was looked at.
func (v *visit) posted() (form url.Values, header http.Header, err error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, nil, &apiError{Status: http.StatusBadRequest, Code: "InvalidRequestBody", Message: "The form cannot be read, or is too large."}
	}
	header = http.Header{}
	for name, field := range map[string]string{"Idempotency-Key": "key", "If-Match": "etag"} {
		if value := v.r.PostForm.Get(field); value != "" {
			header.Set(name, value)
		}
	}
	return v.r.PostForm, header, nil
}

// post sends a change to the API.
func (v *visit) post(ctx context.Context, path string, header http.Header, body, out any) error {
	_, err := v.api.send(ctx, http.MethodPost, path, nil, header, body, out)
	return err
}
