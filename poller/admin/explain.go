package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Explanation is the reason why a row was or was not delivered: its position in the source, and the state of the poller
// that should deliver it.
type Explanation struct {
	sqlsource.Explanation
	// Place is the poller's position, Condition its condition, and Problem its last error.
	Place     poller.Cursor
	Condition poller.Condition
	Problem   string
	// EventID is that of this version of the row, "" without one.
	EventID string
	// End is the end of a backfill, nil for a poller without an end.
	End *poller.Cursor
}

// Explain explains why the row of a key was or was not delivered. The key is a JSON object of the key columns, or the
// value of the only one. Explain uses its own connection, and may wait for the settle window; bound ctx. The errors are
// those of Lag, and poller.ErrInvalid for an invalid key. A poller that has never run is at the beginning.
func (a Admin) Explain(ctx context.Context, name, key string) (e Explanation, err error) {
	p, source, err := a.asked(ctx, name)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	object, err := keyObject(key, source.Definition().Keys)
	if err != nil {
		return e, err
	}
	e = Explanation{Place: p.place(), Condition: p.Condition()}
	if doc := p.View.Document; doc != nil {
		e.Problem = doc.WhatIsWrong()
		if doc.Backfill != nil {
			e.End = &doc.Backfill.End
		}
	}
	if e.Explanation, err = source.Explain(ctx, object, e.Place); err != nil {
		if errors.Is(err, sqlsource.ErrColumnType) {
			err = fmt.Errorf("%w: %w", poller.ErrInvalid, err)
		}
		return e, err
	}
	if e.Row.Key != nil {
		e.EventID = poller.EventID(name, e.Row)
	}
	return e, nil
}

// keyObject makes a JSON object of a key as operators write it.
func keyObject(text string, keys []string) (json.RawMessage, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text), nil
	}
	if len(keys) != 1 {
		return nil, fmt.Errorf("%w: the key %.64q: the key columns are %s: give them as a JSON object", poller.ErrInvalid, text, strings.Join(keys, ", "))
	}
	return json.Marshal(map[string]string{keys[0]: text})
}

// asked reads the state of a poller and opens its table or query; a replication slot has no rows and plans to show. An
// unreadable state is an error; a missing one is not.
func (a Admin) asked(ctx context.Context, name string) (p Poller, source *sqlsource.Source, err error) {
	if p, err = a.Get(ctx, name); err != nil {
		return p, nil, err
	}
	if p.Err != nil && !errors.Is(p.Err, poller.ErrNotFound) {
		return p, nil, p.Err
	}
	opened, err := a.source(ctx, name)
	if err != nil {
		return p, nil, err
	}
	source, ok := opened.(*sqlsource.Source)
	if !ok {
		return p, nil, errors.Join(fmt.Errorf("poller %s: %w: it reads a replication slot, of which neither rows nor plans can be asked for: see its lag", name, poller.ErrInvalid), opened.Close())
	}
	if doc := p.View.Document; doc != nil {
		if err := doc.CheckDatabase(ctx, source); err != nil {
			return p, nil, errors.Join(fmt.Errorf("poller %s: %w", name, err), source.Close())
		}
	}
	return p, source, nil
}

func (p Poller) place() poller.Cursor {
	if p.View.Document == nil {
		return poller.Cursor{}
	}
	return p.View.Document.Cursor()
}

// Plan is the next fetch of a poller, with its progress.
type Plan struct {
	sqlsource.Plan
	Place poller.Cursor
	// Delivered is the number of delivered rows, 0 when unknown.
	Delivered int64
	// End is the end of a backfill, nil for a poller without an end.
	End *poller.Cursor
}

// defaultBatch is the number of rows of a poller's first fetch.
const defaultBatch = 100

// Plan returns the next fetch of a poller. It delivers and changes nothing. It uses its own connection, and may wait
// for the settle window; bound ctx. The errors are those of Lag. A poller that has never run is at the beginning.
func (a Admin) Plan(ctx context.Context, name string, o sqlsource.PlanOptions) (out Plan, err error) {
	p, source, err := a.asked(ctx, name)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	out.Place = p.place()
	if doc := p.View.Document; doc != nil {
		if doc.Checkpoint != nil {
			out.Delivered = doc.Checkpoint.Metadata.RowsTotal
		}
		if doc.Backfill != nil {
			out.End = &doc.Backfill.End
		}
	}
	o.Limit = cmp.Or(o.Limit, p.Setting.Options.BatchSize, defaultBatch)
	out.Plan, err = source.Plan(ctx, out.Place, o)
	return out, err
}
