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
	// ErrNotFound means that nothing visible to the tenant has the correlation id.
	ErrNotFound = errors.New("nothing is known under the correlation id")
	// ErrPlace means that the place is not one of a page.
	ErrPlace = errors.New("not a place in a timeline")
)

// The sources of a timeline.
type (
	// History is the required part of engine.History.
	History interface {
		List(ctx context.Context, f engine.HistoryFilter) (engine.HistoryPage, error)
	}
	// Letters is the required part of engine.DeadLetters.
	Letters interface {
		List(ctx context.Context, f engine.DeadLetterFilter) (engine.DeadLetterPage, error)
		Get(ctx context.Context, engine, rowKey string) (engine.DeadLetter, error)
	}
	// Runs is the required part of orchestrator.Runtime.
	Runs interface {
		Status(ctx context.Context, id string) (orchestrator.Summary, error)
		Rounds(ctx context.Context, id string, limit int, continuation string) ([]orchestrator.Round, string, error)
	}
	// Tasks is the required part of tasks.Service.
	Tasks interface {
		Of(ctx context.Context, orchestration string, limit int) ([]tasks.Task, bool, error)
	}
	// Audit is the required part of audit.Log.
	Audit interface {
		List(ctx context.Context, f audit.Filter, limit int, continuation string) (audit.Page, error)
	}
	// Events is the required part of outbox.Admin.
	Events interface {
		Look(ctx context.Context, tenant, id string) (outbox.Record, error)
	}
)

// Config has the sources of a timeline.
type Config struct {
	// Engines are the engines whose history and dead letters are read. History and DeadLetters are required.
	Engines     []string
	History     History
	DeadLetters Letters
	// Runs are the orchestrations, nil for none. List lists them like catalog.Catalog.List. RunID is that of
	// engine.Pipeline; without it, runs are found by the list only.
	Runs  Runs
	List  func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)
	RunID func(engine string, m engine.Message) string
	// Tasks are the human tasks; without them, tasks appear as far as the rounds know them.
	Tasks Tasks
	// Events is the outbox, and EventID returns the id of a publication's key there; without them, deliveries are omitted.
	Events  Events
	EventID func(tenantID, eventType, key string) string
	// Audit is the audit log; without it, actions are omitted.
	Audit Audit
	// Now is the clock and Log logs unreadable data; both are required.
	Now func() time.Time
	Log *slog.Logger
}

// Query selects a page.
type Query struct {
	CorrelationID string
	// TenantID is the tenant of the caller, "" for the platform, which sees everything.
	TenantID string
	// Kind selects items of one kind, "" all. Since selects those that happened then or later, those that started before
	// and ended later, and open ones.
	Kind  Kind
	Since time.Time
	// Limit is 1 to MaxLimit, 0 for DefaultLimit. After is Page.Next of the previous page.
	Limit int
	After string
}

// Page is a page of a timeline, oldest first.
type Page struct {
	Items []Item
	// Next is the place after the page, "" on the last one.
	Next string
	// Truncated means that all pages omit something.
	Truncated bool
}

// Reader reads timelines. It is safe for concurrent use.
type Reader struct{ config Config }

// NewReader returns a Reader; it does not validate c.
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

// selects reports whether an item matches the query.
func (q *Query) selects(i *Item) bool {
	if q.Kind != "" && i.Kind != q.Kind {
		return false
	}
	return q.Since.IsZero() || !i.At.Before(q.Since) || !i.EndedAt.IsZero() && !i.EndedAt.Before(q.Since) || i.open()
}

// open reports whether the item will have an end and has none yet.
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

// placeOf returns the place after an item.
func placeOf(i *Item) string { return strconv.FormatInt(i.At.UnixMicro(), 10) + "/" + i.ID }

// openPlace decodes a place.
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
