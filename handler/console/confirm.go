package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
)

// confirmPage asks for the confirmation of an action on a part of the app. It keeps the entered values when the API
// refuses it.
type confirmPage struct {
	Title, Button, Consequence string
	// What is the target of the action, and Back the address to return to.
	What Text
	Back string
	// Action is the target of the form, ETag the displayed version, and Key makes repeats of the form one change.
	Action, ETag, Key string
	// Durations are the possible durations, if one is entered, and HasReason means that a reason is entered.
	Durations []duration
	HasReason bool
	Reason    string
	// Missing is the permission that the user lacks for it, and Problem the error; "" for none.
	Missing access.Permission
	Problem Text
}

// duration is a possible duration.
type duration struct {
	Seconds  string
	Label    string
	Selected bool
}

// shown returns its page.
func (p *confirmPage) shown() page { return page{template: "confirm", title: p.Title, model: p} }

// need checks that the user has the permission for it.
func (p *confirmPage) need(v *visit, need access.Permission) {
	if !v.may(need) {
		p.Missing = need
	}
}

// outcome leads on after success, or shows the form again with the API's error.
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

// posted returns the values of a form, with the headers that make it one change of the displayed version.
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
