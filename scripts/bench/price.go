package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// tally counts storage transactions by their billing category.
type tally struct{ tables, queues, blobReads, blobWrites int }

// tallied counts calls by their billing category.
func tallied(calls []faults.Call) tally {
	var t tally
	for _, c := range calls {
		switch {
		case c.Service == "tables":
			t.tables++
		case c.Service == "queues":
			t.queues++
		case c.Operation == "Get":
			t.blobReads++
		default:
			t.blobWrites++ // a list costs as much as a write
		}
	}
	return t
}

func (t tally) plus(other tally) tally {
	return tally{t.tables + other.tables, t.queues + other.queues, t.blobReads + other.blobReads, t.blobWrites + other.blobWrites}
}

func (t tally) minus(other tally) tally {
	return tally{t.tables - other.tables, t.queues - other.queues, t.blobReads - other.blobReads, t.blobWrites - other.blobWrites}
}

func (t tally) total() int { return t.tables + t.queues + t.blobReads + t.blobWrites }

func (t tally) String() string {
	text := fmt.Sprintf("%d table + %d queue", t.tables, t.queues)
	if blobs := t.blobReads + t.blobWrites; blobs > 0 {
		text += fmt.Sprintf(" + %d blob", blobs)
	}
	return text + " transactions"
}

// The price of 10,000 transactions in US dollars, in a general-purpose v2 account with locally redundant storage, pay
// as you go: tables in East US and West Europe, and queues and hot block blobs in West US. docs/performance.md has
// their source; the current list applies to a bill.
const (
	pricesAsOf     = "tables July 2026, queues and blobs July 2024, LRS, general-purpose v2"
	tablesPrice    = 0.00036
	queuesPrice    = 0.004
	blobReadPrice  = 0.0044
	blobWritePrice = 0.055
)

// million returns the price of a million times the tally, in US dollars.
func (t tally) million() float64 {
	each := float64(t.tables)*tablesPrice + float64(t.queues)*queuesPrice + float64(t.blobReads)*blobReadPrice + float64(t.blobWrites)*blobWritePrice
	return each / 10_000 * 1_000_000
}

// priced is a shape that Durable Functions has, too.
type priced struct {
	name    string
	count   func(context.Context) (tally, error)
	durable tally
}

// pricedShapes lists the shapes with a price. A message is counted from its sending.
func pricedShapes() []priced {
	return []priced{
		{"sequence/3", messageTally("sequence", 3), durableSequence(3)},
		{"sequence/5", messageTally("sequence", 5), durableSequence(5)},
		{"fanout/100", messageTally("fanout", 100), durableFanOut(100)},
		{"fanout/1000", messageTally("fanout", 1000), durableFanOut(1000)},
		{"timer", timerTally, durableTimer()},
		{"event", eventTally, durableEvent()},
	}
}

// prices returns the price of a million runs, next to that of Durable Functions.
func prices() []scenario {
	var all []scenario
	for _, p := range pricedShapes() {
		name := "price/" + p.name
		metrics := []metric{{name, "USD/million", ""}, {name + "/durable_functions", "USD/million", ""}, {name + "/ratio", "ratio", "Durable Functions' price divided by ours"}}
		all = append(all, scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
			ours, err := p.count(ctx)
			if err != nil {
				return nil, err
			}
			metrics[0].goal = fmt.Sprintf("%v; prices: %s", ours, pricesAsOf)
			metrics[1].goal = fmt.Sprintf("%v by the formulas of docs/performance.md; the same prices", p.durable)
			return []float64{ours.million(), p.durable.million(), p.durable.million() / ours.million()}, nil
		}})
	}
	return all
}

// messageTally counts an engine message that works through n activities, with its history and its sending.
func messageTally(shape string, n int) func(context.Context) (tally, error) {
	return func(ctx context.Context) (tally, error) {
		h, err := newHouse(ctx)
		if err != nil {
			return tally{}, err
		}
		calls, err := h.calls(ctx, plan{shape, n})
		return tallied(calls).plus(tally{queues: 1}), err
	}
}
