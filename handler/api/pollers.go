package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
)

const (
	// lagTimeout bounds the database query for the lag, and the wait for its turn.
	lagTimeout = 10 * time.Second
	// lagsAtOnce bounds the databases that are queried in parallel.
	lagsAtOnce = 2
)

// pollers are the pollers of the app, nil for none.
type pollers struct {
	admin  *admin.Admin
	counts func() map[string]poller.Counters
	// asking has a slot for each parallel query.
	asking chan struct{}
}

func newPollers(c Config) *pollers {
	p := &pollers{admin: c.Pollers, counts: c.PollerCounts, asking: make(chan struct{}, lagsAtOnce)}
	if p.counts == nil {
		p.counts = func() map[string]poller.Counters { return nil }
	}
	return p
}

// pollerResources returns the paths of pollers.
func (a *api) pollerResources() []resource {
	get := func(run endpoint) map[string]method {
		return map[string]method{http.MethodGet: {access.PollersRead, run}}
	}
	all := []resource{
		{"/api/pollers", databases, get(a.listPollers)},
		{"/api/pollers/:poller", databases, get(a.getPoller)},
		{"/api/pollers/:poller/lag", databases, get(a.getPollerLag)},
	}
	for _, kind := range admin.Kinds() {
		all = append(all, resource{"/api/pollers/:poller/" + string(kind), databases, map[string]method{http.MethodPost: {access.PollersChange, a.changePoller(kind)}}})
	}
	return all
}

// pollerItem is a poller in a list: its state, and the counts of this process. No database is queried.
type pollerItem struct {
	Name      string           `json:"name"`
	Condition poller.Condition `json:"condition"`
	// Problem is the current problem, "" for none: the last error, or an unreadable state.
	Problem string `json:"problem,omitempty"`
	// Source is the source; without a definition, and before the first run, it is unknown.
	Source *pollerSource `json:"source,omitempty"`
	// Defined means that the settings of the app define it.
	Defined bool `json:"defined"`
	pollerPlace
	// SeenAtUtc is when it last recorded that it was running.
	SeenAtUtc time.Time         `json:"seenAtUtc,omitzero"`
	LastBatch *pollerBatch      `json:"lastBatch,omitempty"`
	Lease     pollerLease       `json:"lease"`
	Failure   *pollerFailureOf  `json:"failure,omitempty"`
	Process   *pollerProcess    `json:"process,omitempty"`
	Backfill  *pollerBackfillOf `json:"backfill,omitempty"`
}

// pollerSource is the source of a poller, without its address.
type pollerSource struct {
	Dialect  string   `json:"dialect"`
	SourceID string   `json:"sourceId"`
	Object   string   `json:"object"`
	Cursor   string   `json:"cursor"`
	Keys     []string `json:"keys"`
	Bound    string   `json:"bound,omitempty"`
}

// pollerPlace is the place of a poller. Place is for display; an empty Cursor is the beginning.
type pollerPlace struct {
	Place  string         `json:"place"`
	Cursor *poller.Cursor `json:"cursor,omitempty"`
}

type pollerBatch struct {
	ID    string    `json:"id,omitempty"`
	Rows  int       `json:"rows"`
	AtUtc time.Time `json:"atUtc"`
}

type pollerLease struct {
	// Live means that a process has the lease.
	Live     bool      `json:"live"`
	Owner    string    `json:"owner,omitempty"`
	Token    int64     `json:"token"`
	UntilUtc time.Time `json:"untilUtc,omitzero"`
}

// pollerFailureOf is the failure that blocks a poller. Rows, NextAtUtc, Searching and Stopped are of a failed batch,
// Ticks of an earlier failure.
type pollerFailureOf struct {
	Of         string    `json:"of"`
	Error      string    `json:"error"`
	Ticks      int       `json:"ticks,omitempty"`
	Attempts   int       `json:"attempts,omitempty"`
	Rows       int       `json:"rows,omitempty"`
	FirstAtUtc time.Time `json:"firstAtUtc"`
	LastAtUtc  time.Time `json:"lastAtUtc"`
	NextAtUtc  time.Time `json:"nextAtUtc,omitzero"`
	Searching  bool      `json:"searching,omitempty"`
	Stopped    bool      `json:"stopped,omitempty"`
}

// pollerProcess counts the work of the poller in the answering process, since its start.
type pollerProcess struct {
	Ticks            int64     `json:"ticks"`
	Failures         int64     `json:"failures"`
	Rows             int64     `json:"rows"`
	Quarantined      int64     `json:"quarantined"`
	BatchSize        int       `json:"batchSize"`
	LagSeconds       *float64  `json:"lagSeconds,omitempty"`
	LastSuccessAtUtc time.Time `json:"lastSuccessAtUtc,omitzero"`
	HeldBack         string    `json:"heldBack,omitempty"`
}

type pollerBackfillOf struct {
	End  string `json:"end"`
	Done bool   `json:"done"`
}

// pollerDetail is one poller.
type pollerDetail struct {
	pollerItem
	// Quarantine are the latest rows, and those that were dead-lettered.
	Quarantine *pollerQuarantine `json:"quarantine,omitempty"`
	Settings   *pollerSettings   `json:"settings,omitempty"`
	// Document is the stored state.
	Document json.RawMessage `json:"document,omitempty"`
}

type pollerQuarantine struct {
	Rows        int `json:"rows"`
	Quarantined int `json:"quarantined"`
}

// pollerSettings are the settings of a poller. Of its connection, they name only the place of the connection string.
type pollerSettings struct {
	Schedule   string               `json:"schedule"`
	Function   string               `json:"function"`
	State      string               `json:"state"`
	Connection poller.Connection    `json:"connection"`
	Definition poller.Definition    `json:"definition"`
	Engine     *poller.EngineTarget `json:"engine,omitempty"`
	Outbox     *poller.OutboxTarget `json:"outbox,omitempty"`
	// LeaseTTL is a Go duration.
	LeaseTTL    string `json:"leaseTtl"`
	Quarantines bool   `json:"quarantines"`
	Backfill    bool   `json:"backfill"`
}

// listPollers lists the pollers that are defined or have a state, by name.
func (a *api) listPollers(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "limit", "continuationToken")
	limit := cmp.Or(q.limit(), engine.DefaultLimit)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("pollers")
	after, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	page, more, err := a.pollers.admin.Page(ctx, after, limit)
	if err != nil {
		return reply{}, err
	}
	token := ""
	if more {
		token = sealToken(page[len(page)-1].Name, fingerprint)
	}
	counts := a.pollers.counts()
	return reply{data: listOf(page, token, func(p admin.Poller) pollerItem { return pollerItemOf(p, counts) })}, nil
}

// getPoller returns one poller, with its stored state.
func (a *api) getPoller(ctx context.Context, r *request) (reply, error) {
	p, err := a.poller(ctx, r)
	if err != nil {
		return reply{}, err
	}
	d := pollerDetail{pollerItem: pollerItemOf(p, a.pollers.counts())}
	if p.View.Document != nil {
		d.Document = p.View.Text // its errors were redacted when they were written
	}
	if doc := p.View.Document; doc != nil && doc.Quarantine != nil {
		d.Quarantine = &pollerQuarantine{doc.Quarantine.Rows, doc.Quarantine.Quarantined}
	}
	if s := p.Setting; s != nil {
		definition, _ := p.Definition()
		d.Settings = &pollerSettings{Schedule: s.Schedule, Function: s.Function(), State: s.State, Connection: s.Connection, Definition: definition, Engine: s.Engine, Outbox: s.Outbox,
			LeaseTTL: s.Options.WithDefaults().LeaseTTL.String(), Quarantines: !s.NoQuarantine, Backfill: s.Options.Backfill}
	}
	return reply{data: d}, nil
}

// poller reads the poller of the path.
func (a *api) poller(ctx context.Context, r *request) (admin.Poller, error) {
	name, ok := r.param("poller")
	if !ok {
		return admin.Poller{}, poller.ErrNotFound
	}
	return a.pollers.admin.Get(ctx, name)
}

func pollerItemOf(p admin.Poller, counts map[string]poller.Counters) pollerItem {
	item := pollerItem{Name: p.Name, Condition: p.Condition(), Defined: p.Setting != nil, pollerPlace: pollerPlace{Place: poller.Cursor{}.String()}}
	if d, ok := p.Definition(); ok {
		item.Source = &pollerSource{d.Dialect, d.SourceID, d.Object, d.Cursor, notNil(d.Keys), d.Bound}
	}
	if c, ok := counts[p.Name]; ok {
		item.Process = pollerProcessOf(c)
	}
	switch {
	case errors.Is(p.Err, poller.ErrNotFound):
		return item
	case p.Err != nil:
		item.Problem = redact.Text(p.Err.Error())
		return item
	}
	doc := p.View.Document
	item.Problem, item.SeenAtUtc, item.pollerPlace = redact.Text(doc.WhatIsWrong()), doc.SeenAt(), pollerPlaceOf(doc)
	item.Lease = pollerLease{p.View.Live, doc.Lease.Owner, doc.Lease.Token, time.Time{}}
	if doc.Lease.Owner != "" {
		item.Lease.UntilUtc = doc.Lease.Expires
	}
	if c := doc.Checkpoint; c != nil {
		item.LastBatch = &pollerBatch{c.LastBatchID, c.Metadata.RowCount, c.UpdatedAt}
	}
	if b := doc.Backfill; b != nil {
		item.Backfill = &pollerBackfillOf{b.End.String(), b.Done}
	}
	item.Failure = failureIn(doc)
	return item
}

func pollerPlaceOf(doc *poller.Document) pollerPlace {
	place := pollerPlace{Place: doc.Cursor().String()}
	if c := doc.Cursor(); !c.IsZero() {
		place.Cursor = &c
	}
	return place
}

// failureIn returns the failure that blocks the poller, nil for none.
func failureIn(doc *poller.Document) *pollerFailureOf {
	if f := doc.TickFailure; f != nil {
		return &pollerFailureOf{Of: "tick", Error: redact.Text(f.Error), Ticks: f.Ticks, FirstAtUtc: f.FirstAt, LastAtUtc: f.LastAt}
	}
	if f := doc.Failure; f != nil {
		return &pollerFailureOf{Of: "batch", Error: redact.Text(f.Error), Attempts: f.Attempts, Rows: f.Rows, FirstAtUtc: f.FirstAt, LastAtUtc: f.LastAt, NextAtUtc: f.NextAt,
			Searching: f.Bisecting, Stopped: f.Breaker}
	}
	return nil
}

func pollerProcessOf(c poller.Counters) *pollerProcess {
	p := &pollerProcess{Ticks: c.Ticks, Failures: c.Failures, Rows: c.Rows, Quarantined: c.Quarantined, BatchSize: c.BatchSize, LastSuccessAtUtc: c.LastSuccess, HeldBack: c.HeldBack}
	if c.Lag >= 0 {
		seconds := c.Lag.Seconds()
		p.LagSeconds = &seconds
	}
	return p
}

// pollerLag is how far a poller is behind its database, by a query.
type pollerLag struct {
	Place    string `json:"place"`
	End      string `json:"end"`
	CaughtUp bool   `json:"caughtUp"`
	// BehindSeconds is the time between both, if places are times.
	BehindSeconds *float64 `json:"behindSeconds,omitempty"`
	HeldBack      string   `json:"heldBack,omitempty"`
	// RetainedBytes is the size of the log that the database keeps for the poller.
	RetainedBytes int64 `json:"retainedBytes,omitempty"`
}

// getPollerLag queries the database of one poller, with a bound on parallel queries and their duration.
func (a *api) getPollerLag(ctx context.Context, r *request) (reply, error) {
	p, err := a.poller(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if p.Err != nil && !errors.Is(p.Err, poller.ErrNotFound) {
		return reply{}, p.Err
	}
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	select {
	case a.pollers.asking <- struct{}{}:
		defer func() { <-a.pollers.asking }()
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
	lag, err := a.pollers.admin.Lag(ctx, p.Name)
	if err != nil {
		return reply{}, sourceFailure(err)
	}
	out := pollerLag{Place: lag.Place.String(), End: lag.End.String(), CaughtUp: lag.CaughtUp, HeldBack: lag.HeldBack, RetainedBytes: lag.Retained}
	if lag.Behind > 0 {
		seconds := lag.Behind.Seconds()
		out.BehindSeconds = &seconds
	}
	return reply{data: out}, nil
}
