package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// orchestrationPage is one orchestration.
type orchestrationPage struct {
	Run                         orchestrationDetail
	Input, Output, CustomStatus Payload
	// Done is the last command of this page, "" for none.
	Done string
	// Started means that it was started from a page of the console.
	Started bool
	// Offline means that this is an opened history, not an orchestration of this app: the page has no links to others.
	Offline  bool
	Commands []commandOffer
	Children []child
	Rounds   roundsPart
	// Events is its part of the timeline, Chart the chart of that, and Left means that both are incomplete.
	Events part[timelineList]
	Chart  *chart
	Left   bool
}

// orchestrationDetail is one orchestration as in the API.
type orchestrationDetail struct {
	orchestrationItem
	Attempt       int             `json:"attempt"`
	StatusSince   time.Time       `json:"statusSinceUtc"`
	Round         int             `json:"round"`
	StateVersion  int64           `json:"stateVersion"`
	Node          Text            `json:"lastExecutedBy"`
	CustomStatus  json.RawMessage `json:"customStatus"`
	Input         json.RawMessage `json:"input"`
	InputBytes    int             `json:"inputBytes"`
	Output        json.RawMessage `json:"output"`
	OutputBytes   int             `json:"outputBytes"`
	Failure       *runError       `json:"failure"`
	LastError     *runError       `json:"lastError"`
	Calls         int             `json:"calls"`
	Waits         []wait          `json:"waits"`
	PendingEvents []Text          `json:"pendingEvents"`

	etag string
}

// Error returns its error or its last error; nil without either.
func (o orchestrationDetail) Error() *runError { return cmp.Or(o.Failure, o.LastError) }

// Parent returns the address of its caller, "" for none.
func (o orchestrationDetail) Parent() string { return orchestrationLink(o.ParentID) }

// runError is the error of an orchestration, or of a call of it.
type runError struct {
	Message   Text `json:"message"`
	Code      Text `json:"code"`
	Permanent bool `json:"permanent"`
}

// wait is an open call.
type wait struct {
	Kind        Text      `json:"kind"`
	Name        Text      `json:"name"`
	ChildID     Text      `json:"childId"`
	Attempts    int       `json:"attempts"`
	ScheduledAt time.Time `json:"scheduledAtUtc"`
}

// Child returns the address of the awaited orchestration, "" for other waits.
func (w wait) Child() string { return orchestrationLink(w.ChildID) }

// child is a called orchestration, with its status, "" if unknown.
type child struct {
	ID     Text
	Status string
}

// Link returns the address of its page.
func (c child) Link() string { return orchestrationLink(c.ID) }

// orchestrationRow returns the path of the orchestration in the API.
func (v *visit) orchestrationRow() string {
	return "/api/orchestrations/" + urlpath.Escape(v.r.PathValue("id"))
}

// findOrchestration reads the orchestration in the path.
func (v *visit) findOrchestration(ctx context.Context) (o orchestrationDetail, err error) {
	header, err := v.api.send(ctx, http.MethodGet, v.orchestrationRow(), nil, nil, nil, &o)
	o.etag = header.Get("ETag")
	return o, err
}

// orchestration shows one.
func orchestration(ctx context.Context, v *visit) (page, error) {
	o, err := v.findOrchestration(ctx)
	if refused, ok := asAPIError(err); ok && refused.Code == damagedCode {
		out := failedPage(err)
		out.model = failure{Message: refused.Message, CorrelationID: Text(refused.CorrelationID), Next: orchestrationLink(Text(v.r.PathValue("id"))) + "/force-purge", NextTo: "Purge it by force"}
		return out, nil
	}
	if err != nil {
		return page{}, err
	}
	p := orchestrationPage{Run: o, Input: payloadOf(string(o.Input)), Output: payloadOf(string(o.Output)), CustomStatus: payloadOf(string(o.CustomStatus)), Commands: offers(o, v)}
	done := v.r.URL.Query().Get("done")
	if c, ok := commandOf(done); ok {
		p.Done = c.name
	}
	p.Started = done == startedDone
	var wait sync.WaitGroup
	wait.Go(func() { p.Rounds = v.askRounds(ctx, o.ID) })
	wait.Go(func() { p.Events = v.askTimeline(ctx, o.CorrelationID, "") })
	wait.Wait()
	all := p.Events.Data.rows()
	p.Chart, p.Left = chartOf(rowsOf(all, o.ID), v.console.config.Now()), p.Events.Data.Truncated || p.Events.Data.Token != ""
	p.Children = childrenOf(o, all, p.Rounds.Rows)
	return page{template: "orchestration", title: "Orchestration", model: p, elsewhere: v.thing(o.ID, orchestrationLine("show", string(o.ID), "--rounds"))}, nil
}

// childrenOf returns the children that the displayed parts name, each once.
func childrenOf(o orchestrationDetail, timeline []timelineRow, rounds []roundRow) (all []child) {
	known := map[Text]bool{}
	add := func(id Text, status string) {
		if id != "" && !known[id] {
			known[id] = true
			all = append(all, child{id, status})
		}
	}
	for _, r := range timeline {
		if r.Kind == "orchestration" && r.parent == o.ID {
			add(r.run, r.Status)
		}
	}
	for _, w := range o.Waits {
		add(w.ChildID, "")
	}
	for _, r := range rounds {
		add(r.ChildID, "")
	}
	return all
}

// timelineList are items of a timeline.
type timelineList struct {
	Items     []json.RawMessage `json:"items"`
	Truncated bool              `json:"truncated"`
	Token     string            `json:"continuationToken"`
}

func (l timelineList) empty() bool { return len(l.Items) == 0 }

func (l timelineList) rows() (rows []timelineRow) {
	for _, raw := range l.Items {
		rows = append(rows, rowOf(raw))
	}
	return rows
}

// Runs returns its orchestrations.
func (l timelineList) Runs() (runs []child) {
	for _, r := range l.rows() {
		if r.Kind == "orchestration" && r.run != "" {
			runs = append(runs, child{r.run, r.Status})
		}
	}
	return runs
}

// timelineLimit is the number of timeline items that the page of an orchestration reads.
const timelineLimit = "500"

// askTimeline requests the timeline of a correlation id, of one kind or of all. An unknown id is not an error.
func (v *visit) askTimeline(ctx context.Context, correlationID Text, kind string) (p part[timelineList]) {
	if correlationID == "" {
		return p
	}
	if !v.may(access.TimelineRead) {
		p.Missing = access.TimelineRead
		return p
	}
	query := url.Values{"limit": {timelineLimit}}
	if kind != "" {
		query.Set("kind", kind)
	}
	err := v.api.get(ctx, "/api/timeline/"+urlpath.Escape(string(correlationID)), query, &p.Data)
	if err != nil && status(err) != http.StatusNotFound {
		p.Failed = Text(err.Error())
	}
	return p
}

// rowsOf returns the rows of a timeline about one orchestration.
func rowsOf(all []timelineRow, id Text) (own []timelineRow) {
	for _, r := range all {
		if r.run == id {
			own = append(own, r)
		}
	}
	return own
}
