package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/urlpath"
)

// timelinePage is the timeline of a correlation id.
type timelinePage struct {
	CorrelationID string
	Rows          []timelineRow
	Chart         *chart
	// Next is the address of the next page, "" at the end; Truncated means that all pages omit something.
	Next, First string
	Truncated   bool
	Problem     Text
}

// timelineOf returns the address of the timeline of a correlation id, "" for none.
func timelineOf(id Text) string {
	return oneParameter(timelinePath, "correlationId", string(id))
}

// oneParameter returns a path with one parameter, "" without a value.
func oneParameter(path, name, value string) string {
	if value == "" {
		return ""
	}
	return address(path, url.Values{name: {value}})
}

// timelineRow is a row of a timeline's table.
type timelineRow struct {
	At, EndedAt time.Time
	Kind        string
	Engine      Text
	What        Text
	Status      string
	// Outcome is one of good, bad, open and plain.
	Outcome string
	Detail  Text
	Link    string
	// Attempts are those of a call.
	Attempts []attempt

	// run is its orchestration, and parent the caller of that; "" for none.
	run, parent Text
}

// Took returns its duration, "" without an end.
func (r timelineRow) Took() string {
	if r.EndedAt.IsZero() {
		return ""
	}
	return span(r.EndedAt.Sub(r.At))
}

// Tries returns the number of attempts, if there were several.
func (r timelineRow) Tries() int {
	if len(r.Attempts) > 1 {
		return len(r.Attempts)
	}
	return 0
}

// timeline shows the timeline of a piece of work, in all engines.
func timeline(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	id, token := strings.TrimSpace(query.Get("correlationId")), query.Get("continuationToken")
	p := timelinePage{CorrelationID: id}
	out := page{template: "timeline", title: "Timeline", model: &p}
	asked := url.Values{}
	path := id
	if id == "" {
		path = " " // no work has this id, and a missing permission is reported
	}
	if token != "" {
		asked.Set("continuationToken", token)
		p.First = timelineOf(Text(id))
	}
	var found struct {
		Items     []json.RawMessage `json:"items"`
		Truncated bool              `json:"truncated"`
		Token     string            `json:"continuationToken"`
	}
	err := v.api.get(ctx, "/api/timeline/"+urlpath.Escape(path), asked, &found)
	if e, ok := asAPIError(err); ok && id == "" && e.Status == http.StatusNotFound {
		return out, nil
	} else if ok && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) {
		p.Problem, out.status, out.code = e.Message, e.Status, e.Code
		return out, nil
	}
	if err != nil {
		return page{}, err
	}
	for _, raw := range found.Items {
		p.Rows = append(p.Rows, rowOf(raw))
	}
	out.elsewhere = v.thing(Text(id), showLine("timeline", id))
	p.Chart = chartOf(p.Rows, v.console.config.Now())
	p.Truncated = found.Truncated
	if found.Token != "" {
		p.Next = address(timelinePath, url.Values{"correlationId": {id}, "continuationToken": {found.Token}})
	}
	return out, nil
}
