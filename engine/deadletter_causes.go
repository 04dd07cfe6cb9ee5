package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// causesColumn of a count row holds its counts by error signature and tenant, as JSON.
	causesColumn = "Causes"
	// maxCauses bounds the column, in bytes: some two hundred signatures. A count row with more has no causes.
	maxCauses = 24 << 10
)

// cause is the number of dead letters of a count row with one signature and tenant.
type cause struct {
	Signature string `json:"signature"`
	// Tenant is the tenant's id in its folded form, "" for the platform.
	Tenant   string `json:"tenant,omitempty"`
	Pending  int64  `json:"pending,omitempty"`
	Resolved int64  `json:"resolved,omitempty"`
	Expired  int64  `json:"expired,omitempty"`
	// First is the earliest first failure that was counted here since the count was last zero.
	First time.Time `json:"first"`
}

// of points to the count of a status.
func (c *cause) of(status DeadLetterStatus) *int64 {
	switch status {
	case StatusPending:
		return &c.Pending
	case StatusResolved:
		return &c.Resolved
	default:
		return &c.Expired
	}
}

func (c *cause) total() int64 { return c.Pending + c.Resolved + c.Expired }

// causesOf returns the causes of a count row. ok is false when their sum differs from the row's counts: then a
// program without causes changed the row, or it has too many.
func causesOf(e tables.Entity) (all []cause, ok bool) {
	if text := e.String(causesColumn); text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return nil, false
		}
	}
	var sum cause
	for _, c := range all {
		sum.Pending, sum.Resolved, sum.Expired = sum.Pending+c.Pending, sum.Resolved+c.Resolved, sum.Expired+c.Expired
	}
	return all, sum.Pending == e.Int(string(StatusPending)) && sum.Resolved == e.Int(string(StatusResolved)) && sum.Expired == e.Int(string(StatusExpired))
}

// putCauses sets the causes of a count row, or removes them if they are too many.
func putCauses(e tables.Entity, all []cause) {
	delete(e.Properties, causesColumn)
	if text, err := json.Marshal(all); err == nil && len(all) > 0 && len(text) <= maxCauses {
		e.Properties[causesColumn] = string(text)
	}
}

// moveCause moves a dead letter to another status; "" means no dead letter. ok is false when it was not counted
// before.
func moveCause(all []cause, letter DeadLetter, from, to DeadLetterStatus) (moved []cause, ok bool) {
	folded := tenant.Fold(cleanText(letter.TenantID))
	at := slices.IndexFunc(all, func(c cause) bool { return c.Signature == letter.ErrorSignature && c.Tenant == folded })
	if at < 0 {
		if from != "" {
			return nil, false
		}
		at, all = len(all), append(all, cause{Signature: letter.ErrorSignature, Tenant: folded, First: letter.FirstFailureAtUtc})
	}
	c := &all[at]
	if letter.FirstFailureAtUtc.Before(c.First) {
		c.First = letter.FirstFailureAtUtc
	}
	if from != "" {
		if *c.of(from) == 0 {
			return nil, false
		}
		*c.of(from)--
	}
	if to != "" {
		*c.of(to)++
	}
	if c.total() == 0 {
		all = slices.Delete(all, at, at+1)
	}
	return all, true
}

// countRows reads the count rows of an engine.
func (d *DeadLetters) countRows(ctx context.Context, engine string) (rows []tables.Entity, err error) {
	q := tables.Query{Partition: tables.EscapeKey(engine), From: countPrefix, To: tables.PrefixEnd(countPrefix)}
	for e, err := range tables.All(ctx, d.store, d.table, q) {
		if err != nil {
			return nil, fmt.Errorf("count dead letters of %s: %w", engine, err)
		}
		rows = append(rows, e)
	}
	return rows, nil
}

// recount adds missing causes to the count rows of an engine, from the index rows by status. A row that changes
// meanwhile, or counts something else, is left to the next call.
func (d *DeadLetters) recount(ctx context.Context, engine string) error {
	rows, err := d.countRows(ctx, engine)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(e tables.Entity) bool {
		_, ok := causesOf(e)
		return ok
	})
	if len(rows) == 0 {
		return nil
	}
	causes, err := d.causesByRow(ctx, engine)
	if err != nil {
		return fmt.Errorf("count the causes of dead letters of %s: %w", engine, err)
	}
	for _, e := range rows {
		putCauses(e, causes[e.Row])
		if _, ok := causesOf(e); !ok {
			continue
		}
		if err := d.store.Apply(ctx, d.table, tables.Replace(e)); err != nil && !changed(err) {
			return fmt.Errorf("count the causes of dead letters in %s: %w", e.Key, err)
		}
	}
	return nil
}

// causesByRow counts all dead letters of an engine by their count rows.
func (d *DeadLetters) causesByRow(ctx context.Context, engine string) (map[string][]cause, error) {
	causes := map[string][]cause{}
	for _, status := range deadLetterStatuses() {
		prefix := statusPrefix(status)
		q := tables.Query{Partition: tables.EscapeKey(engine), From: prefix, To: tables.PrefixEnd(prefix),
			Select: []string{targetColumn, tenantColumn, "ErrorSignature", "FirstFailureAtUtc"}}
		for e, err := range tables.All(ctx, d.store, d.table, q) {
			if err != nil {
				return nil, err
			}
			letter := DeadLetter{ErrorSignature: e.String("ErrorSignature"), TenantID: e.String(tenantColumn), FirstFailureAtUtc: e.Time("FirstFailureAtUtc")}
			row := countRow(e.String(targetColumn))
			causes[row], _ = moveCause(causes[row], letter, "", DeadLetterStatus(status))
		}
	}
	return causes, nil
}

// countRow returns the key of the row that counts a dead letter. It is derived from the dead letter's own key, so
// that the same row always counts it.
func countRow(row string) string { return countPrefix + digest(row)[:1] }

func deadLetterStatuses() []string {
	return []string{string(StatusPending), string(StatusResolved), string(StatusExpired)}
}
