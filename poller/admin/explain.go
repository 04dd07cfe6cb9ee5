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

// Explanation is why a row has come or has not: where it is in its source, and what the poller that should deliver it is doing.
type Explanation struct {
	sqlsource.Explanation
	// Place is where the poller is, Condition how it is, and Problem the error that it has met last.
	Place     poller.Cursor
	Condition poller.Condition
	Problem   string
	// EventID is that of this version of the row, "" when there is none.
	EventID string
	// End is where a backfill ends, nil for a poller without an end.
	End *poller.Cursor
}

// Explain says why the row of a key has come or has not. The key is a JSON object of the key columns, or the value of the only one. It
// takes a connection of its own, and may wait for the settle window; bound ctx. The errors are those of Lag, and poller.ErrInvalid for a
// key that is none. A poller that has never run is at the beginning.
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

// keyObject makes a JSON object of a key as people write it.
func keyObject(text string, keys []string) (json.RawMessage, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text), nil
	}
	if len(keys) != 1 {
		return nil, fmt.Errorf("%w: the key %.64q: the key columns are %s: give them as a JSON object", poller.ErrInvalid, text, strings.Join(keys, ", "))
	}
	return json.Marshal(map[string]string{keys[0]: text})
}

// asked reads the state of a poller and opens the table or query that it reads; a replication slot tells of no rows and plans. A state
// that cannot be read is an error; one that is not there is none.
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

// Plan is what the next fetch of a poller would do, and how far it has come.
type Plan struct {
	sqlsource.Plan
	Place poller.Cursor
	// Delivered is how many rows it has delivered since the beginning, 0 when that is not known.
	Delivered int64
	// End is where a backfill ends, nil for a poller without an end.
	End *poller.Cursor
}

// defaultBatch is how many rows a poller fetches at first.
const defaultBatch = 100

// Plan says what the next fetch of a poller would do. Nothing is delivered or changed. It takes a connection of its own, and may wait for
// the settle window; bound ctx. The errors are those of Lag. A poller that has never run is at the beginning.
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
