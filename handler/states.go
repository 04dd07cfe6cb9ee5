package handler

import (
	"context"

	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
)

// states counts stalled and retried orchestrations, for all displays: no more often than the outbox is measured.
func states(list *catalog.Catalog) func(context.Context) (catalog.StatusCounts, error) {
	return metrics.Cached(func(ctx context.Context) (catalog.StatusCounts, error) {
		return list.CountByStatus(ctx, orchestrator.Stalled, orchestrator.Retrying)
	}, 0, nil)
}

// stalled returns the stalled ones of a census.
func stalled(census func(context.Context) (catalog.StatusCounts, error)) func(context.Context) (catalog.StatusCount, error) {
	return func(ctx context.Context) (catalog.StatusCount, error) {
		c, err := census(ctx)
		return c[orchestrator.Stalled], err
	}
}

// maxDamaged bounds the count of damaged orchestrations.
const maxDamaged = 1000

// damaged counts the unreadable orchestrations.
func damaged(runtime *orchestrator.Runtime) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		found, _, err := runtime.Damages(ctx, maxDamaged)
		return len(found), err
	}
}
