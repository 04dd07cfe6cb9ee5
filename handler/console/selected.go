package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	selectedPath = lettersPath + "/selected"
	// maxSelected is the most dead letters that can be selected: all of the longest page.
	maxSelected = 100
	// selectPage is the value of select in the address of a list with everything on its page selected.
	selectPage = "page"
)

// selectedRoutes are those of actions on selected dead letters.
func selectedRoutes() []route {
	return []route{routeOf(http.MethodPost, selectedPath, access.DeadLettersRead, askSelected)}
}

// selected is a selected dead letter.
type selected struct{ Engine, RowKey Text }

// Value returns the dead letter's value in a form.
func (s selected) Value() string {
	return url.QueryEscape(string(s.Engine)) + "/" + url.QueryEscape(string(s.RowKey))
}

// Link returns the address of its page.
func (s selected) Link() string { return letterLink(s.Engine, s.RowKey) }

// Choice returns the dead letter's selection value on a list.
func (l letterItem) Choice() string { return selected{l.Engine, l.RowKey}.Value() }

// Pending reports whether it can be selected.
func (l letterItem) Pending() bool { return l.Status == "Pending" }

// Selectable reports whether the page has a selectable dead letter.
func (p lettersPage) Selectable() bool { return slices.ContainsFunc(p.Items, letterItem.Pending) }

// All returns the address of this page with everything selected.
func (p lettersPage) All() string { return p.at(selectPage) }

// None returns the address with nothing selected.
func (p lettersPage) None() string { return p.at("") }

func (p lettersPage) at(choice string) string {
	query := p.Filter.without("")
	query.Set("continuationToken", p.token)
	query.Set("select", choice)
	return address(lettersPath, query)
}

// Query returns the filter's value in a form.
func (f filter) Query() string { return f.values.Encode() }

// selection reads the dead letters of a form, each once; ok is false for invalid values.
func selection(values []string) (rows []selected, ok bool) {
	for _, value := range values {
		engine, rowKey, found := strings.Cut(value, "/")
		engine, err := url.QueryUnescape(engine)
		rowKey, err2 := url.QueryUnescape(rowKey)
		if !found || err != nil || err2 != nil || engine == "" || rowKey == "" {
			return nil, false
		}
		if row := (selected{Text(engine), Text(rowKey)}); !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows, len(rows) <= maxSelected
}

// rows returns the dead letters of a selection in the API's form.
func rows(all []selected) (named []map[string]string) {
	for _, s := range all {
		named = append(named, map[string]string{"engine": string(s.Engine), "rowKey": string(s.RowKey)})
	}
	return named
}

// askSelected shows the confirmation page of a selection: like that of a filter, with these dead letters in its place.
func askSelected(_ context.Context, v *visit) (page, error) {
	if !v.may(access.DeadLettersRead) { // no API request is sent
		return refusedPage(http.StatusForbidden, "Forbidden", Text("You need the permission "+access.DeadLettersRead+".")), nil
	}
	form, _, err := v.posted()
	if err != nil {
		return page{}, err
	}
	query, err := url.ParseQuery(form.Get("filter"))
	if err != nil {
		query = url.Values{}
	}
	back := filterOf(query).List()
	refuse := func(why Text) (page, error) {
		return backTo(refusedPage(http.StatusBadRequest, "InvalidRequestBody", why), back, "the list"), nil
	}
	s, known := map[string]sweep{"retry": retryAll(), "expire": expireAll()}[form.Get("action")]
	chosen, ok := selection(form["row"])
	switch {
	case !known || !ok:
		return refuse("This was sent by no page of the console, or has more than 100 dead letters. Open the list again, and select from there.")
	case len(chosen) == 0:
		return refuse("Nothing is selected. Select the dead letters that are meant on the list.")
	}
	p := bulkPage{Title: s.title, Button: strings.TrimSuffix(s.button, " all"), Consequence: s.consequence, Canary: s.canary, Count: len(chosen), Selected: chosen, Action: s.path, Back: back, Key: v.console.config.NewKey()}
	if s.canary && len(chosen) > firstTries {
		p.Tries, p.Seconds = firstTries, firstSeconds
	}
	if !v.may(access.DeadLettersBulk) {
		p.Missing = access.DeadLettersBulk
	}
	return page{template: "bulk", title: s.title, model: p}, nil
}
