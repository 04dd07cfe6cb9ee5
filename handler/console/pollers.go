package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/durations"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

const (
	pollersPath = Root + "/pollers"
	pollerPath  = pollersPath + "/:poller"
)

// pollerRoutes are the pages of pollers, and the targets of their forms.
func pollerRoutes() []route {
	all := []route{
		routeOf(http.MethodGet, pollersPath, access.PollersRead, pollers),
		routeOf(http.MethodGet, pollerPath, access.PollersRead, showPoller),
	}
	for _, a := range pollerActs() {
		path := pollerPath + "/" + a.name
		all = append(all, routeOf(http.MethodGet, path, access.PollersRead, askPoller(a)), routeOf(http.MethodPost, path, access.PollersChange, doPoller(a)))
	}
	return all
}

// pollersPage is a page of the list of pollers.
type pollersPage struct {
	Items []pollerItem
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the address.
	Problem Text
}

// pollerItem is a poller in lists.
type pollerItem struct {
	Name      Text           `json:"name"`
	Condition string         `json:"condition"`
	Problem   Text           `json:"problem"`
	Source    *pollerSource  `json:"source"`
	Defined   bool           `json:"defined"`
	Place     Text           `json:"place"`
	SeenAt    time.Time      `json:"seenAtUtc"`
	LastBatch *pollerBatch   `json:"lastBatch"`
	Lease     pollerLease    `json:"lease"`
	Failure   *pollerFailure `json:"failure"`
	Process   *pollerProcess `json:"process"`
}

type pollerSource struct {
	Dialect  Text   `json:"dialect"`
	SourceID Text   `json:"sourceId"`
	Object   Text   `json:"object"`
	Cursor   Text   `json:"cursor"`
	Keys     []Text `json:"keys"`
	Bound    Text   `json:"bound"`
}

type pollerBatch struct {
	ID   Text      `json:"id"`
	Rows int       `json:"rows"`
	At   time.Time `json:"atUtc"`
}

type pollerLease struct {
	Live  bool      `json:"live"`
	Owner Text      `json:"owner"`
	Token int64     `json:"token"`
	Until time.Time `json:"untilUtc"`
}

type pollerFailure struct {
	Of        string    `json:"of"`
	Error     Text      `json:"error"`
	Ticks     int       `json:"ticks"`
	Attempts  int       `json:"attempts"`
	Rows      int       `json:"rows"`
	FirstAt   time.Time `json:"firstAtUtc"`
	LastAt    time.Time `json:"lastAtUtc"`
	NextAt    time.Time `json:"nextAtUtc"`
	Searching bool      `json:"searching"`
	Stopped   bool      `json:"stopped"`
}

type pollerProcess struct {
	Ticks         int64     `json:"ticks"`
	Failures      int64     `json:"failures"`
	Rows          int64     `json:"rows"`
	Quarantined   int64     `json:"quarantined"`
	LagSeconds    *float64  `json:"lagSeconds"`
	LastSuccessAt time.Time `json:"lastSuccessAtUtc"`
	HeldBack      Text      `json:"heldBack"`
}

// Lag returns the displayed lag, "" when unknown.
func (p *pollerProcess) Lag() string {
	if p.LagSeconds == nil {
		return ""
	}
	return lagText(*p.LagSeconds)
}

func lagText(seconds float64) string {
	if seconds == 0 {
		return "none"
	}
	return span(durations.Of(seconds * float64(time.Second)))
}

// State returns the displayed condition, which is the API's word.
func (p pollerItem) State() Text {
	if p.Condition == "" {
		return ""
	}
	return Text(upperFirst(p.Condition))
}

// Link returns the address of its page.
func (p pollerItem) Link() string { return pollersPath + "/" + urlpath.Escape(string(p.Name)) }

// Line returns the error in short.
func (p pollerItem) Line() Text { return line(p.Problem) }

// pollers lists them.
func pollers(ctx context.Context, v *visit) (page, error) {
	p, query := pollersPage{}, url.Values{}
	if token := v.r.URL.Query().Get("continuationToken"); token != "" {
		query.Set("continuationToken", token)
		p.First = pollersPath
	}
	var list struct {
		Items []pollerItem `json:"items"`
		Token string       `json:"continuationToken"`
	}
	out := page{template: "pollers", title: "Pollers", model: &p}
	err := v.api.get(ctx, "/api/pollers", query, &list)
	out.elsewhere = v.list("poller", "list")
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	p.Items = list.Items
	if list.Token != "" {
		p.Next = address(pollersPath, url.Values{"continuationToken": {list.Token}})
	}
	return out, nil
}

// pollerDetail is one poller.
type pollerDetail struct {
	pollerItem
	Quarantine *struct {
		Rows        int `json:"rows"`
		Quarantined int `json:"quarantined"`
	} `json:"quarantine"`
	Backfill *struct {
		End  Text `json:"end"`
		Done bool `json:"done"`
	} `json:"backfill"`
	Settings *pollerSettings `json:"settings"`
	Document json.RawMessage `json:"document"`
}

// pollerSettings is its definition in the settings of the app.
type pollerSettings struct {
	Schedule   Text `json:"schedule"`
	Function   Text `json:"function"`
	State      Text `json:"state"`
	Connection struct {
		Setting Text `json:"setting"`
		Secret  Text `json:"secret"`
	} `json:"connection"`
	Definition  json.RawMessage `json:"definition"`
	LeaseTTL    Text            `json:"leaseTtl"`
	Quarantines bool            `json:"quarantines"`
	Engine      *struct {
		Engine         Text `json:"engine"`
		Operation      Text `json:"operation"`
		Instance       Text `json:"instanceId"`
		InstanceColumn Text `json:"instanceColumn"`
	} `json:"engine"`
	Outbox *struct {
		EventType    Text `json:"eventType"`
		Tenant       Text `json:"tenantId"`
		TenantColumn Text `json:"tenantColumn"`
		Ordered      bool `json:"ordered"`
	} `json:"outbox"`
}

// pollerLag is the answer of its database.
type pollerLag struct {
	Place         Text     `json:"place"`
	End           Text     `json:"end"`
	CaughtUp      bool     `json:"caughtUp"`
	BehindSeconds *float64 `json:"behindSeconds"`
	HeldBack      Text     `json:"heldBack"`
}

func (pollerLag) empty() bool { return false }

// Behind returns the time between place and end, "" where places are not times.
func (l pollerLag) Behind() string {
	if l.BehindSeconds == nil {
		return ""
	}
	return lagText(*l.BehindSeconds)
}

// pollerPage is one poller.
type pollerPage struct {
	Poller     pollerDetail
	Definition Payload
	Document   Payload
	// Letters is the address of its rows among the dead letters.
	Letters string
	// Asked means that the database was queried for the lag, which is Lag; Ask is the address that queries it.
	Asked bool
	Lag   part[pollerLag]
	Ask   string
	Acts  []pollerOffer
	// Done is the last action of this page, as a sentence; "" for none.
	Done string
	// Missing is the permission that the user lacks for all of Acts.
	Missing access.Permission
}

// pollerRow returns the path of the poller in the API.
func (v *visit) pollerRow() string { return "/api/pollers/" + urlpath.Escape(v.r.PathValue("poller")) }

// findPoller reads the poller in the path.
func (v *visit) findPoller(ctx context.Context) (p pollerDetail, err error) {
	err = v.api.get(ctx, v.pollerRow(), nil, &p)
	return p, err
}

// showPoller shows one. It queries the poller's database only if the address requests that: a plain view costs the
// database nothing.
func showPoller(ctx context.Context, v *visit) (page, error) {
	d, err := v.findPoller(ctx)
	if err != nil {
		return page{}, err
	}
	query := v.r.URL.Query()
	p := pollerPage{Poller: d, Document: payloadOf(string(d.Document)), Letters: address(lettersPath, url.Values{"engine": {"poller-" + string(d.Name)}}),
		Ask: address(d.Link(), url.Values{"lag": {"now"}}), Missing: v.missing(access.PollersChange)}
	if d.Settings != nil {
		p.Definition = payloadOf(string(d.Settings.Definition))
	}
	if query.Get("lag") == "now" {
		p.Asked, p.Lag = true, ask[pollerLag](ctx, v, access.PollersRead, v.pollerRow()+"/lag", nil)
	}
	for _, a := range pollerActs() {
		p.Acts = append(p.Acts, pollerOffer{a.name, a.button, d.Link() + "/" + a.name, a.refused(d)})
		if query.Get("done") == a.name {
			p.Done = a.said
		}
	}
	return page{template: "poller", title: fmt.Sprintf("Poller %s", d.Name), model: p, elsewhere: v.thing(d.Name, showLine("poller show", string(d.Name)))}, nil
}
