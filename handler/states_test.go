package handler

import (
	"context"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/tables"
)

// However many ask, the list is asked once for each state.
func TestCensusIsShared(t *testing.T) {
	t.Parallel()
	queries := 0
	store := faults.Tables(tables.NewMemory(), func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Query" {
			queries++
		}
		return next(ctx)
	})
	list, err := catalog.New(catalog.Config{Tables: store, Runtime: func() *orchestrator.Runtime { return nil }})
	if err == nil {
		err = list.Prepare(t.Context())
	}
	testenv.Check(t, err)
	census := states(list)
	for range 50 {
		if tally, err := stalled(census)(t.Context()); err != nil || tally.Total() != 0 {
			t.Errorf("%+v, %v", tally, err)
		}
		if c, err := census(t.Context()); err != nil || len(c) != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if queries != 2 {
		t.Errorf("%d queries", queries)
	}
}
