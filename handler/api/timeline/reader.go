package timeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
)

// MaxLimit is the longest page, DefaultLimit that of a query without a limit.
const (
	MaxLimit     = 1000
	DefaultLimit = 100
)

// Test for these errors with errors.Is.
var (
	// ErrNotFound: nothing is known under the correlation id, as far as the tenant sees.
	ErrNotFound = errors.New("nothing is known under the correlation id")
	// ErrPlace: the place is none of a page.
	ErrPlace = errors.New("not a place in a timeline")
)

// The sources, as far as a timeline reads them.
type (
	// History is the part of engine.History that is needed.
	History interface {
		List(ctx context.Context, f engine.HistoryFilter) (engine.HistoryPage, error)
	}
	// Letters is the part of engine.DeadLetters that is needed.
	Letters interface {
		List(ctx context.Context, f engine.DeadLetterFilter) (engine.DeadLetterPage, error)
		Get(ctx context.Context, engine, rowKey string) (engine.DeadLetter, error)
	}
	// Runs is the part of orchestrator.Runtime that is needed.
	Runs interface {
		Status(ctx context.Context, id string) (orchestrator.Summary, error)
		Rounds(ctx context.Context, id string, limit int, continuation string) ([]orchestrator.Round, string, error)
	}
	// Tasks is the part of tasks.Service that is needed.
	Tasks interface {
		Of(ctx context.Context, orchestration string, limit int) ([]tasks.Task, bool, error)
	}
	// Audit is the part of audit.Log that is needed.
	Audit interface {
		List(ctx context.Context, f audit.Filter, limit int, continuation string) (audit.Page, error)
	}
	// Events is the part of outbox.Admin that is needed.
	Events interface {
		Look(ctx context.Context, tenant, id string) (outbox.Record, error)
	}
)

// Config says what a timeline is read from.
type Config struct {
	// Engines are those whose history and dead letters are read. History and DeadLetters are required.
	Engines     []string
	History     History
	DeadLetters Letters
	// Runs are the orchestrations, nil for none. List lists them as catalog.Catalog.List does. RunID is that of engine.Pipeline;
	// without it, runs are found by the list only.
	Runs  Runs
	List  func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)
	RunID func(engine string, m engine.Message) string
	// Tasks are the human tasks; without them, those are told as far as the rounds know.
	Tasks Tasks
	// Events is the outbox, and EventID gives the id that a publication with a key has there; without them, deliveries are not told.
	Events  Events
	EventID func(tenantID, eventType, key string) string
	// Audit is the audit log; without it, actions are not told.
	Audit Audit
	// Now is the clock and Log takes what cannot be read; both are required.
	Now func() time.Time
	Log *slog.Logger
}

// Query says which page is wanted.
type Query struct {
	CorrelationID string
	// TenantID is the tenant that asks, "" for the platform, which sees everything.
	TenantID string
	// Kind selects items of one kind, "" all. Since selects those that happened then or later, began before and ended later, or
	// have not ended.
	Kind  Kind
	Since time.Time
	// Limit is 1 to MaxLimit, 0 for DefaultLimit. After is Page.Next of the page before.
	Limit int
	After string
}

// Page is a page of a timeline, oldest first.
type Page struct {
	Items []Item
	// Next is the place behind the page, "" on the last one.
	Next string
	// Truncated says that something is left out of all pages.
	Truncated bool
}

// Reader reads timelines. It is safe for concurrent use.
type Reader struct{ config Config }

// NewReader makes a Reader; it does not validate c.
func NewReader(c Config) *Reader { return &Reader{c} }

// Read reads a page. The errors are ErrNotFound, ErrPlace, and those of storage.
func (r *Reader) Read(ctx context.Context, q Query) (Page, error) {
	at, id, err := openPlace(q.After)
	if err != nil {
		return Page{}, err
	}
	g := newGathering(r.config, q)
	if err := g.gather(ctx); err != nil {
		return Page{}, fmt.Errorf("timeline of correlation id %s: %w", q.CorrelationID, err)
	}
	if len(g.items) == 0 && !g.truncated.Load() {
		return Page{}, ErrNotFound
	}
	page := Page{Truncated: g.truncated.Load(), Items: slices.DeleteFunc(g.items, func(i Item) bool {
		return !q.selects(&i) || q.After != "" && i.compare(at, id) <= 0
	})}
	slices.SortFunc(page.Items, func(a, b Item) int { return a.compare(b.At, b.ID) })
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		page.Next = placeOf(&page.Items[limit-1])
	}
	return page, nil
}

// selects reports whether an item is one that was asked for.
func (q *Query) selects(i *Item) bool {
	if q.Kind != "" && i.Kind != q.Kind {
		return false
	}
	return q.Since.IsZero() || !i.At.Before(q.Since) || !i.EndedAt.IsZero() && !i.EndedAt.Before(q.Since) || i.open()
}

// open reports whether the item will have an end and has none.
func (i *Item) open() bool {
	if !i.EndedAt.IsZero() {
		return false
	}
	switch {
	case i.Call != nil:
		return i.Call.Status == CallRunning || i.Call.Status == CallRetrying
	case i.Timer != nil:
		return i.Timer.Status == CallRunning
	case i.Task != nil:
		return i.Task.Status == CallRunning
	case i.Publication != nil:
		return i.Publication.Status == outbox.StatusPending
	case i.Orchestration != nil:
		return true
	}
	return false
}

// placeOf is the place behind an item.
func placeOf(i *Item) string { return strconv.FormatInt(i.At.UnixMicro(), 10) + "/" + i.ID }

// openPlace takes a place apart.
func openPlace(place string) (at time.Time, id string, err error) {
	if place == "" {
		return time.Time{}, "", nil
	}
	micros, id, ok := strings.Cut(place, "/")
	n, err := strconv.ParseInt(micros, 10, 64)
	if !ok || err != nil || id == "" {
		return time.Time{}, "", ErrPlace
	}
	return time.UnixMicro(n).UTC(), id, nil
}
