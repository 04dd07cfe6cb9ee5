package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Applied is the state that an app derived from its own document at its last start, for programs that use its tables.
type Applied struct {
	// InstanceID is the instance of the app's own document.
	InstanceID string
	// Tables are the tables of the app.
	Tables TableNames
	// Earlier are its previous tables, the latest last.
	Earlier []TableNames
	// At is when the app began to use Tables.
	At time.Time
}

// TableNames are the tables of an app's engines.
type TableNames struct {
	DeadLetters string `json:"dlqTableName"`
	History     string `json:"historyTableName"`
}

// The row of Applied, next to the instances.
const (
	partitionApp = "app"
	rowTables    = "tables"

	columnInstance = "InstanceId"
	columnTables   = "Tables"
	columnEarlier  = "Earlier"
	columnAt       = "AppliedAtUtc"
)

// maxEarlier bounds Applied.Earlier.
const maxEarlier = 16

// Applied reads the record of the app: the zero value if the app never started.
func (r *Registry) Applied(ctx context.Context) (Applied, error) {
	a, _, err := r.applied(ctx)
	return a, err
}

func (r *Registry) applied(ctx context.Context) (a Applied, etag string, err error) {
	e, err := r.store.Get(ctx, r.table, appliedKey())
	if errors.Is(err, tables.ErrNotFound) {
		return Applied{}, "", nil
	}
	if err != nil {
		return Applied{}, "", fmt.Errorf("read which tables the app works with: %w", err)
	}
	a = Applied{InstanceID: e.String(columnInstance), At: e.Time(columnAt)}
	err = errors.Join(json.Unmarshal([]byte(e.String(columnTables)), &a.Tables), json.Unmarshal([]byte(e.String(columnEarlier)), &a.Earlier))
	if err != nil {
		return Applied{}, "", fmt.Errorf("row %s: %w: %w", e.Key, ErrDamaged, err)
	}
	return a, e.ETag, nil
}

func appliedKey() tables.Key { return tables.Key{Partition: partitionApp, Row: rowTables} }

// Apply records the tables that the app uses from now on, and returns the record. The previous ones are kept as
// Earlier. The record is written only when it changes, so that many processes can start at the same time.
func (r *Registry) Apply(ctx context.Context, instanceID string, names TableNames) (Applied, error) {
	for try := 1; ; try++ {
		before, etag, err := r.applied(ctx)
		if err != nil {
			return Applied{}, err
		}
		if etag != "" && before.InstanceID == instanceID && before.Tables == names {
			return before, nil
		}
		next := Applied{InstanceID: instanceID, Tables: names, At: r.now().Truncate(time.Microsecond)}
		for _, earlier := range append(before.Earlier, before.Tables) {
			if earlier != names && earlier != (TableNames{}) && !slices.Contains(next.Earlier, earlier) {
				next.Earlier = append(next.Earlier, earlier)
			}
		}
		next.Earlier = next.Earlier[max(0, len(next.Earlier)-maxEarlier):]
		op, err := appliedOp(next, etag)
		if err != nil {
			return Applied{}, err
		}
		switch err := r.store.Apply(ctx, r.table, op); {
		case err == nil:
			return next, nil
		case try == maxTries, pause(ctx, try) != nil, !transient(err) && !errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrPrecondition):
			return Applied{}, fmt.Errorf("note which tables the app works with: %w", err)
		}
	}
}

func appliedOp(a Applied, etag string) (tables.Op, error) {
	names, err := json.Marshal(a.Tables)
	earlier, errToo := json.Marshal(a.Earlier)
	if err := errors.Join(err, errToo); err != nil {
		return tables.Op{}, err
	}
	e := tables.Entity{Key: appliedKey(), ETag: etag, Properties: map[string]any{columnInstance: a.InstanceID,
		columnTables: string(names), columnEarlier: string(earlier), columnAt: a.At}}
	if etag == "" {
		return tables.Insert(e), nil
	}
	return tables.Replace(e), nil
}
