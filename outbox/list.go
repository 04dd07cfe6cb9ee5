package outbox

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// StatusFailed selects, in a Filter, pending messages that have failed before or wait for configuration. No
	// message has this status.
	StatusFailed Status = "failed"

	// clockSlack is the clock difference of processes up to which a list by age is complete.
	clockSlack = 10 * time.Minute
	// maxToken bounds a token from outside, in bytes.
	maxToken = 2 << 10
)

// Filter selects messages (outbox document, "API (Optional Admin)"). A zero field does not filter.
type Filter struct {
	// Status is StatusPending, StatusFailed, StatusProcessed, StatusSkipped or StatusDead; "" selects all, pending ones
	// first.
	Status Status
	// TenantID selects one tenant, whose id is compared exactly, unlike elsewhere, because it is the partition; "" selects
	// all, in the order of their escaped ids.
	TenantID  string
	EventType string
	// CorrelationID is that of the run that added them.
	CorrelationID string
	// CreatedFrom is inclusive, CreatedTo exclusive.
	CreatedFrom, CreatedTo time.Time
	// Limit is the length of the page, 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// Continuation is Page.Continuation of the previous page.
	Continuation string
}

// Page is one page of a list. Of each tenant it has pending messages in the order in which they are due, failed ones
// oldest first, and ended ones newest first.
type Page struct {
	Records []Record
	// Continuation continues the list; "" on the last page. A page with one is never empty.
	Continuation string
}

// statusRange is a key range of index rows of one status.
type statusRange struct {
	prefix string
	// where is the additional status condition of its rows.
	where Status
	// descends means that the newest comes first.
	descends bool
}

// statusRanges returns the key ranges for a status.
func statusRanges(s Status) ([]statusRange, error) {
	pending := []statusRange{{prefix: pendingPrefix}, {prefix: waitingPrefix}}
	ended := statusRange{prefix: processedPrefix, descends: true}
	dead := statusRange{prefix: deadPrefix, descends: true}
	switch s {
	case "":
		return append(pending, ended, dead), nil
	case StatusPending:
		return pending, nil
	case StatusFailed:
		return []statusRange{{prefix: failedPrefix}}, nil
	case StatusProcessed, StatusSkipped:
		ended.where = s
		return []statusRange{ended}, nil
	case StatusDead:
		return []statusRange{dead}, nil
	}
	return nil, fmt.Errorf("%w: status %q: use pending, failed, processed, skipped or dead", ErrInvalid, clip(string(s), 32))
}

// query returns the query for a page of the range, after the row after if that is set.
func (b statusRange) query(f *Filter, tenant, after string) tables.Query {
	q := tables.Query{Partition: partition(tenant), From: b.prefix, To: endOf(b.prefix), Where: map[string]any{}, Limit: f.Limit + 1}
	if b.where != "" {
		q.Where["Status"] = string(b.where)
	}
	if f.EventType != "" {
		q.Where["EventType"] = f.EventType
	}
	if f.CorrelationID != "" {
		q.Where["CorrelationId"] = f.CorrelationID
	}
	// A message is not due, dead or processed before its creation.
	if !f.CreatedFrom.IsZero() && b.prefix != waitingPrefix {
		if from := f.CreatedFrom.Add(-clockSlack); b.descends {
			q.To = b.prefix + inverted(from) + "."
		} else {
			q.From = b.prefix + digits(from)
		}
	}
	if !f.CreatedTo.IsZero() && b.prefix == failedPrefix {
		q.To = b.prefix + digits(f.CreatedTo.Add(clockSlack))
	}
	if after != "" {
		q.From = after + " " // no key is between the two
	}
	return q
}

// List reads one page. The cost depends on the page, not on the number of messages; filters by event type, correlation
// id and age are applied to the rows of the status. The errors are ErrInvalid, ErrToken and those of the stores.
func (a *Admin) List(ctx context.Context, f Filter) (Page, error) {
	page, err := a.list(ctx, f)
	if err != nil {
		return Page{}, fmt.Errorf("list messages: %w", err)
	}
	return page, nil
}

func (a *Admin) list(ctx context.Context, f Filter) (Page, error) {
	f.Limit = cmp.Or(f.Limit, DefaultLimit)
	if f.Limit < 1 || f.Limit > MaxLimit {
		return Page{}, fmt.Errorf("%w: limit %d: use 1 to %d", ErrInvalid, f.Limit, MaxLimit)
	}
	if err := cmp.Or(checkID("tenant id", f.TenantID, false), checkID("event type", f.EventType, false), checkID("correlation id", f.CorrelationID, false)); err != nil {
		return Page{}, err
	}
	of, err := statusRanges(f.Status)
	if err != nil {
		return Page{}, err
	}
	at, err := f.position(of)
	if err != nil {
		return Page{}, err
	}
	w := &listing{a: a, f: &f, bands: of}
	if err := w.run(ctx, at); err != nil {
		return Page{}, err
	}
	return w.page(), nil
}

// listing collects one page, and one record more, over ranges and tenants.
type listing struct {
	a     *Admin
	f     *Filter
	bands []statusRange
	found []foundRecord
}

type foundRecord struct {
	Record
	at position
}

// run collects from a position on.
func (w *listing) run(ctx context.Context, at position) error {
	if w.f.TenantID != "" {
		return w.tenant(ctx, w.f.TenantID, at)
	}
	from := partition(at.Tenant)
	for first := true; first || from != ""; first = false {
		list, next, err := w.a.o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			return err
		}
		for _, t := range list {
			start := at
			if t.id != at.Tenant {
				start = position{}
			}
			if err := w.tenant(ctx, t.id, start); err != nil || w.full() {
				return err
			}
		}
		from = next
	}
	return nil
}

func (w *listing) full() bool { return len(w.found) > w.f.Limit }

func (w *listing) tenant(ctx context.Context, tenant string, at position) error {
	for i := at.Band; i < len(w.bands) && !w.full(); i++ {
		after := ""
		if i == at.Band {
			after = at.Row
		}
		q := w.bands[i].query(w.f, tenant, after)
		if q.From >= q.To {
			continue
		}
		for e, err := range tables.All(ctx, w.a.o.tables, w.a.o.table, q) {
			if err != nil {
				return err
			}
			m, err := decode(e)
			if err != nil {
				w.a.o.logger.ErrorContext(ctx, "outbox message left out of a list", "error", err)
				continue
			}
			if !w.f.matches(&m.Record) {
				continue
			}
			m.Payload, m.Attempts = nil, nil
			m.Error = clip(m.Error, maxAttemptError)
			w.found = append(w.found, foundRecord{m.Record, position{Tenant: tenant, Band: i, Row: e.Row}})
			if w.full() {
				return nil
			}
		}
	}
	return nil
}

// matches applies the filter by age exactly; the keys only narrow it down.
func (f *Filter) matches(r *Record) bool {
	return (f.CreatedFrom.IsZero() || !r.CreatedAt.Before(f.CreatedFrom)) && (f.CreatedTo.IsZero() || r.CreatedAt.Before(f.CreatedTo))
}

// page returns the collected records. The extra record shows that another page exists.
func (w *listing) page() Page {
	var p Page
	n := min(len(w.found), w.f.Limit)
	for _, r := range w.found[:n] {
		p.Records = append(p.Records, r.Record)
	}
	if w.full() {
		p.Continuation = w.f.token(w.found[n-1].at)
	}
	return p
}

// position is the position of the last record of a page. Filter is the fingerprint of the filter of the list.
type position struct {
	Tenant string `json:"t"`
	Band   int    `json:"b"`
	Row    string `json:"r"`
	Filter string `json:"f"`
}

func (f *Filter) fingerprint() string {
	// Marshalling strings and times cannot fail.
	parts := []any{f.Status, f.TenantID, f.EventType, f.CreatedFrom.UTC(), f.CreatedTo.UTC()}
	if f.CorrelationID != "" {
		parts = append(parts, f.CorrelationID)
	}
	text, _ := json.Marshal(parts)
	return digest(string(text))
}

func (f *Filter) token(at position) string {
	at.Filter = f.fingerprint()
	text, _ := json.Marshal(at)
	return base64.RawURLEncoding.EncodeToString(text)
}

// position decodes a token, which comes from outside and is validated.
func (f *Filter) position(of []statusRange) (position, error) {
	if f.Continuation == "" {
		return position{}, nil
	}
	var at position
	text, err := base64.RawURLEncoding.DecodeString(f.Continuation)
	if len(f.Continuation) > maxToken || err != nil || json.Unmarshal(text, &at) != nil {
		return position{}, fmt.Errorf("%w: it is damaged", ErrToken)
	}
	if at.Filter != f.fingerprint() {
		return position{}, fmt.Errorf("%w: repeat the filter that it was given for, or leave it out", ErrToken)
	}
	if at.Band < 0 || at.Band >= len(of) || !strings.HasPrefix(at.Row, of[at.Band].prefix) || at.Row != legalRowKey(at.Row) ||
		checkID("tenant id", at.Tenant, true) != nil || f.TenantID != "" && f.TenantID != at.Tenant {
		return position{}, fmt.Errorf("%w: it is damaged", ErrToken)
	}
	return at, nil
}

// legalRowKey returns row if it can be a row key, else "". Of the characters that row keys do not hold, = and ~ are
// allowed, because EscapeKey makes them.
func legalRowKey(row string) string {
	plain := strings.NewReplacer("=", "", "~", "").Replace(row)
	if len(row) > 512 || tables.EscapeKey(plain) != plain {
		return ""
	}
	return row
}
