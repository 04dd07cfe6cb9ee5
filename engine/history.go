package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultHistoryTable is the history table's name (standard, section 6).
const DefaultHistoryTable = "engineHistory"

// Status is the result of an operation, or of a whole run (standard, section 4).
type Status string

// These are the statuses of history entries.
const (
	StatusSucceeded Status = "Succeeded"
	StatusFailed    Status = "Failed"
)

// Entry is one row of the history table: one operation of one run (standard, section 4).
type Entry struct {
	// Engine is the engine's name and the row's partition.
	Engine string
	// RowKey is the escaped correlation id, a hyphen and CreatedAtUtc as 20060102T150405.000000Z. Reads set it; Record
	// computes it.
	RowKey string
	// InstanceID is the managed instance, or publisher.
	InstanceID string
	// TenantID is the tenant of the run, "" for the platform.
	TenantID string
	// Operation is the operation's name.
	Operation string
	Status    Status
	// DurationMs is the duration of the operation, in milliseconds.
	DurationMs int64
	// Input and Output are JSON documents, nil for none. Lists leave them out.
	Input, Output json.RawMessage
	// Error is the error of a failed operation, "" for success. Lists leave it out.
	Error string
	// CreatedAtUtc is when the operation ended, in whole microseconds, by the times of the rounds. It distinguishes
	// the entries of a run, so it is unique among them.
	CreatedAtUtc time.Time
	// CorrelationID names the run.
	CorrelationID string
	// RunStatus is the result of the whole run. Only the last entry of a run that has ended has it; lists leave it out.
	RunStatus Status
	// Work is a digest of the request of the run's message, set with RunStatus.
	Work string
	// SupersededBy is the row key of the entry of the run's later success, for an entry that failed; "" otherwise.
	SupersededBy string
	// ETag is the version of the row. Get and Run set it; Record ignores it.
	ETag string
}

// HistoryFilter selects entries (standard, section 5). A zero field does not filter.
type HistoryFilter struct {
	// Engines are the engines to list, at least one.
	Engines    []string
	InstanceID string
	// TenantID limits the list to a tenant, compared without case. "" is the platform, which sees all.
	TenantID string
	Status   Status
	// Open leaves out failures of runs that have succeeded later.
	Open          bool
	Operation     string
	CorrelationID string
	// From is inclusive and To exclusive; both are compared with CreatedAtUtc.
	From, To time.Time
	// Limit is the length of the page, 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// Token is HistoryPage.Token of the page before.
	Token string
}

// HistoryPage is one page of a list, newest entry first.
type HistoryPage struct {
	Entries []Entry
	// Token continues the list; "" on the last page. A page with a token is never empty.
	Token string
}

// History is the history table (standard, sections 4 and 5). It is safe for concurrent use.
type History struct {
	store     tables.Store
	table     string
	instances *instances
	// registered caches the engine names that were registered with the storage account.
	registered knownNames
}

// NewHistory uses a table of the store; "" means DefaultHistoryTable.
func NewHistory(store tables.Store, table string) *History {
	table = cmp.Or(table, DefaultHistoryTable)
	return &History{store: store, table: table, instances: newInstances(store, table)}
}

// CreateTable creates the table, and the one of reservations, if they are missing.
func (h *History) CreateTable(ctx context.Context) error {
	if err := errors.Join(h.store.CreateTable(ctx, h.table), h.store.CreateTable(ctx, reservationTable)); err != nil {
		return fmt.Errorf("create the history tables: %w", err)
	}
	return nil
}

// Record writes entries of one run of one engine (standard, section 1.6). Up to 33 entries of moderate size, or 25 of a
// tenant, are one transaction. If there are more, the entry with the RunStatus is written last, so a run never looks finished while
// entries are missing. Recording the same entries again changes nothing, as long as their times and statuses are the
// same.
//
// Input, Output and Error are redacted. A document of more than 192 KiB is replaced by {"omittedBytes":n}, and one
// that is not JSON by a JSON string of its text. An error text is cut at 16 KiB. A history row must never make a run
// fail. The errors are ErrIDTooLong, an error for an entry that breaks the rules of Entry, and those of the store.
func (h *History) Record(ctx context.Context, entries ...Entry) error {
	return h.write(ctx, tables.Upsert, entries)
}

// add is Record for new entries; when one exists, the error is tables.ErrExists. So it never replaces an entry with
// more information.
func (h *History) add(ctx context.Context, entries ...Entry) error {
	return h.write(ctx, tables.Insert, entries)
}

func (h *History) write(ctx context.Context, op func(tables.Entity) tables.Op, entries []Entry) error {
	all, err := h.prepared(op, entries)
	if err != nil {
		return err
	}
	for _, ops := range all {
		if err := h.store.Apply(ctx, h.table, ops...); err != nil {
			return fmt.Errorf("record history of %s/%s: %w", entries[0].Engine, entries[0].CorrelationID, err)
		}
	}
	return nil
}

// prepared returns the transactions that write entries, none for none.
func (h *History) prepared(op func(tables.Entity) tables.Op, entries []Entry) ([][]tables.Op, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	first := entries[0]
	if err := checkRun(entries); err != nil {
		return nil, fmt.Errorf("record history of %s/%s: %w", first.Engine, clip(first.CorrelationID, MaxIDLength), err)
	}
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].prepare()
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(len(a.RunStatus), len(b.RunStatus)) })
	return transactions(op, entries), nil
}

// Run reads all entries of a run with all fields, oldest first; an empty result is not an error. It shows whether the
// run has succeeded before (standard, section 1.4): then its last entry has RunStatus StatusSucceeded.
func (h *History) Run(ctx context.Context, engine, correlationID string) ([]Entry, error) {
	var entries []Entry
	for e, err := range tables.All(ctx, h.store, h.table, runQuery(engine, correlationID)) {
		if err != nil {
			return nil, fmt.Errorf("read history of %s/%s: %w", engine, correlationID, err)
		}
		entry := entryOf(e)
		entry.ETag = e.ETag
		entries = append(entries, entry)
	}
	return entries, nil
}

// Get reads one entry. The error is ErrNotFound, or one of the store.
func (h *History) Get(ctx context.Context, engine, rowKey string) (Entry, error) {
	key, ok := mainKey(engine, rowKey)
	if !ok {
		return Entry{}, fmt.Errorf("get history entry: %w", ErrNotFound)
	}
	e, err := h.store.Get(ctx, h.table, key)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return Entry{}, fmt.Errorf("get history entry %s: %w", key, ErrNotFound)
	case err != nil:
		return Entry{}, fmt.Errorf("get history entry %s: %w", key, err)
	}
	entry := entryOf(e)
	entry.ETag = e.ETag
	return entry, nil
}

// List reads one page of entries, newest first (standard, section 5). With filters by engine, status, tenant and
// time, the cost depends on the page and not on the length of the table; with a filter by instance, on the entries of
// that instance in the period, as soon as Retention has indexed older rows. A filter by operation is applied by the
// store, over the index rows that the others select. The errors are ErrFilter, ErrToken and those of the store.
func (h *History) List(ctx context.Context, f HistoryFilter) (HistoryPage, error) {
	also := ""
	if f.Open {
		also = "open"
	}
	q := listQuery{
		engines:  f.Engines,
		tenant:   f.TenantID,
		status:   string(f.Status),
		statuses: []string{string(StatusSucceeded), string(StatusFailed)},
		more:     f.supersededLists(),
		hidden:   f.hides,
		also:     also,
		equal:    map[string]string{"InstanceId": f.InstanceID, "Operation": f.Operation, "CorrelationId": f.CorrelationID},
		from:     f.From,
		to:       f.To,
		limit:    f.Limit,
		token:    f.Token,
		complete: h.instances.complete,
	}
	rows, token, err := q.read(ctx, h.store, h.table, func(l listing, engine string) *rowStream {
		return l.runStream(engine, f.CorrelationID)
	})
	if err != nil {
		return HistoryPage{}, fmt.Errorf("list history: %w", err)
	}
	page := HistoryPage{Token: token}
	for _, row := range rows {
		page.Entries = append(page.Entries, entryOf(row.entity))
	}
	return page, nil
}
