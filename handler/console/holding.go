package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// holding is a change of a dead letter that is not a decision: a note or an assignment.
type holding struct {
	// path is the last segment of its address, here and in the API.
	path string
	// body returns the API's request body for a form.
	body func(form url.Values) map[string]string
}

// holdings returns all of them.
func holdings() []holding {
	none := func(url.Values) map[string]string { return map[string]string{} }
	return []holding{
		{"notes", func(form url.Values) map[string]string { return map[string]string{"text": form.Get("note")} }},
		{"claim", none},
		{"release", none},
		{"assign", func(form url.Values) map[string]string { return map[string]string{"assignee": form.Get("assignee")} }},
	}
}

func holdingRoutes() (all []route) {
	for _, h := range holdings() {
		all = append(all, routeOf(http.MethodPost, letterPath+"/"+h.path, access.DeadLettersDecide, hold(h)))
	}
	return all
}

// hold makes the change, and leads back to the dead letter. The page of the dead letter shows the API's error, and
// keeps the entered text.
func hold(h holding) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		form, header, err := v.posted()
		if err != nil {
			return page{}, err
		}
		err = v.post(ctx, v.letterRow()+"/"+h.path, header, h.body(form), nil)
		refused, ok := asAPIError(err)
		switch {
		case err == nil:
			return page{to: letterLink(Text(v.r.PathValue("engine")), Text(v.r.PathValue("rowKey"))) + "?done=" + h.path}, nil
		case !ok || refused.Status == http.StatusNotFound || refused.Status == http.StatusForbidden:
			return page{}, err
		}
		out, err := letter(ctx, v)
		if err != nil {
			return page{}, err
		}
		if p, ok := out.model.(letterPage); ok {
			p.Held.Problem, p.Held.Note, p.Held.To = refused.Message, form.Get("note"), form.Get("assignee")
			out.model, out.status, out.code = p, refused.Status, refused.Code
		}
		return out, nil
	}
}

// held is the assignee of a dead letter, its notes, and the forms that change them.
type held struct {
	// Mine means that it is assigned to the user.
	Mine bool
	// Link is the address of the dead letter, ETag the displayed version, and Key makes repeats of a form one change.
	Link, ETag, Key string
	Pending         bool
	// Missing is the permission that the user lacks, Problem the error, and Note and To are the entered texts then.
	Missing  access.Permission
	Problem  Text
	Note, To string
}

// heldOf returns that of a dead letter.
func (v *visit) heldOf(l letterDetail) held {
	h := held{Mine: l.Assignee != "" && l.Assignee == v.me.ID, Link: l.Link(), ETag: l.etag, Key: v.console.config.NewKey(), Pending: l.Status == "Pending"}
	if !v.may(access.DeadLettersDecide) {
		h.Missing = access.DeadLettersDecide
	}
	return h
}

// letterNote is a note on a dead letter.
type letterNote struct {
	At   time.Time `json:"atUtc"`
	By   Text      `json:"by"`
	Text Text      `json:"text"`
}

// Holder returns the assignee of a dead letter, "" for none.
func (l letterItem) Holder() Text {
	if l.AssigneeName != "" {
		return l.AssigneeName
	}
	return l.Assignee
}

// Assignees returns the options of a list's form.
func (filter) Assignees() []string { return []string{"me", "nobody"} }
