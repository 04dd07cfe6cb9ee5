package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// azuriteConcurrency exceeds the parallelism of Azurite, which has one thread.
	azuriteConcurrency = 32
	// azuriteStart bounds the start, including an installation from npm.
	azuriteStart = 5 * time.Minute
)

// overAzurite measures the share of an Azurite's possible transactions that orchestrations reach.
func overAzurite() scenario {
	metrics := []metric{
		{"azurite/sequence3/orchestrations_per_s", "orchestrations/s", ""},
		{"azurite/raw/transactions_per_s", "transactions/s", ""},
		{"azurite/ratio", "ratio", "goal 0.85 or more: the orchestrations' transactions in a second, divided by the raw ones"},
	}
	return scenario{metrics, func(ctx context.Context, d time.Duration) (values []float64, err error) {
		startCtx, cancel := context.WithTimeout(ctx, azuriteStart)
		defer cancel()
		server, err := azurite.Start(startCtx, azurite.Config{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		table, err := azure.NewTables(server.Account())
		if err != nil {
			return nil, err
		}
		blob, err := azure.NewBlobs(server.Account())
		if err != nil {
			return nil, err
		}
		b := &sideBySide{tables: table, blobs: blob}
		return b.measure(ctx, d)
	}}
}

// sideBySide measures orchestrations and bare transactions in turns, because Azurite slows down as it fills. Each
// round has a new table, for the same reason.
type sideBySide struct {
	tables tables.Store
	blobs  blobs.Store
	made   int // tables
}

func (b *sideBySide) measure(ctx context.Context, d time.Duration) ([]float64, error) {
	recorded, err := recordRounds(ctx)
	if err != nil {
		return nil, err
	}
	measured, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
		orchestrations, transactions, err := b.orchestrate(ctx, slice)
		if err != nil {
			return nil, err
		}
		raw, err := b.apply(ctx, slice, recorded)
		return []float64{orchestrations, transactions, raw}, err
	})
	if err != nil {
		return nil, err
	}
	orchestrations, transactions, raw := median(column(measured, 0)), median(column(measured, 1)), median(column(measured, 2))
	return []float64{orchestrations, raw, transactions / raw}, nil
}

// orchestrate runs sequences of three activities and returns how many ended in a second, and how many table
// transactions they made.
func (b *sideBySide) orchestrate(ctx context.Context, d time.Duration) (orchestrations, transactions float64, err error) {
	var calls atomic.Int64
	count := func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		calls.Add(1)
		return next(ctx)
	}
	r, err := newRig(ctx, orchestrator.Config{Tables: faults.Tables(b.tables, count), Blobs: b.blobs, Table: b.nextTable()})
	if err != nil {
		return 0, 0, err
	}
	calls.Store(0)
	orchestrations, err = saturate(ctx, azuriteConcurrency, d, func(ctx context.Context) error { return r.run(ctx, "sequence", 3) })
	perOrchestration := float64(calls.Load()) / float64(max(1, r.started.Load()))
	return orchestrations, orchestrations * perOrchestration, err
}

// apply makes the transactions of such orchestrations without a runtime and returns how many were made in a second.
func (b *sideBySide) apply(ctx context.Context, d time.Duration, rounds [][]tables.Op) (float64, error) {
	table := b.nextTable()
	if err := b.tables.CreateTable(ctx, table); err != nil {
		return 0, err
	}
	var made atomic.Int64
	rate, err := saturate(ctx, azuriteConcurrency, d, func(ctx context.Context) error {
		partition := fmt.Sprintf("sequence-%d", made.Add(1))
		for _, ops := range rounds {
			if err := b.tables.Apply(ctx, table, into(partition, ops)...); err != nil {
				return err
			}
		}
		return nil
	})
	return rate * float64(len(rounds)), err
}

func (b *sideBySide) nextTable() string {
	b.made++
	return fmt.Sprintf("bench%d", b.made)
}

// into returns the operations for another partition.
func into(partition string, ops []tables.Op) []tables.Op {
	out := make([]tables.Op, len(ops))
	for i, op := range ops {
		op.Entity.Partition = partition
		out[i] = op
	}
	return out
}

// recorder is a store that records the applied operations.
type recorder struct {
	tables.Store
	applied [][]tables.Op
}

// Apply applies and records the operations.
func (r *recorder) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	r.applied = append(r.applied, faults.Copied(ops))
	return r.Store.Apply(ctx, table, ops...)
}

// recordRounds returns the transactions of one orchestration of three activities as the runtime makes them, so that
// the raw ones have their shape and size.
func recordRounds(ctx context.Context) ([][]tables.Op, error) {
	store := &recorder{Store: tables.NewMemory()}
	r, err := newRig(ctx, orchestrator.Config{Tables: store, Blobs: blobs.NewMemory()})
	if err != nil {
		return nil, err
	}
	err = r.run(ctx, "sequence", 3)
	return store.applied, err
}
