package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/secrets"
)

// part is one line of a count: the requests whose names begin with one of the prefixes.
type part struct {
	name     string
	prefixes []string
}

// parts are the lines of a message of an engine, by table and queue and by kind. rest is what belongs to none of them.
func parts(queue string) []part {
	return []part{
		{"outbox/get", []string{"tables/" + outbox.DefaultTable + "/Get"}},
		{"outbox/query", []string{"tables/" + outbox.DefaultTable + "/Query"}},
		{"outbox/apply", []string{"tables/" + outbox.DefaultTable + "/Apply"}},
		{"outbox/wake", []string{"queues/" + outbox.DefaultQueue + "/"}},
		{"keySlots/query", []string{"tables/" + hmac.SlotsTable + "/Query"}},
		{"keySlots/apply", []string{"tables/" + hmac.SlotsTable + "/Apply"}},
		{"orchestrations/get", []string{"tables/orchestrations/Get"}},
		{"orchestrations/query", []string{"tables/orchestrations/Query"}},
		{"orchestrations/apply", []string{"tables/orchestrations/Apply"}},
		{"history/query", []string{"tables/" + engine.DefaultHistoryTable + "/Query"}},
		{"history/apply", []string{"tables/" + engine.DefaultHistoryTable + "/Apply"}},
		{"queue/receive", []string{"queues/" + queue + "/Receive"}},
		{"queue/delete", []string{"queues/" + queue + "/Delete"}},
	}
}

// vault is the development vault, which stands for another service.
const vault = "tables/" + secrets.DevelopmentTable + "/"

// messageRequests counts what n messages cost each, by part.
func messageRequests(name, goal, engineName, queue string) scenario {
	lines := parts(queue)
	var metrics []metric
	for _, p := range lines {
		metrics = append(metrics, metric{"requests/" + name + "/" + p.name, "requests", ""})
	}
	metrics = append(metrics, metric{"requests/" + name + "/rest", "requests", "node, queues of signals and what else there is"},
		metric{"requests/" + name + "/vault", "requests", "of the development vault; not in the total"},
		metric{"requests/" + name + "/total", "requests", goal})
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		d, err := newCountedApp(ctx)
		if err != nil {
			return nil, err
		}
		defer d.handler.Close()
		if err := d.load(ctx, engineName, queue, 0, hostBatch); err != nil { // what happens once in a process is not counted
			return nil, err
		}
		if err := d.load(ctx, engineName, queue, hostBatch, loaded); err != nil {
			return nil, err
		}
		return d.lines(lines), nil
	}}
}

// lines are the values of parts, of the rest, of the vault and of the total, for each message of a load.
func (d *countedApp) lines(all []part) (values []float64) {
	total := d.sum("") - d.sum(vault)
	rest := total
	for _, p := range all {
		n := d.sum(p.prefixes...)
		rest -= n
		values = append(values, float64(n)/loaded)
	}
	return append(values, float64(rest)/loaded, float64(d.sum(vault))/loaded, float64(total)/loaded)
}

func hmacRequests() scenario {
	return messageRequests("hmac", "goal 11", hmac.Engine, hmac.Queue)
}

func plainRequests() scenario {
	return messageRequests("plain", "an engine with one operation", plainEngine, plainEngine+"-queue")
}

// loneRequests counts what one message costs from its addition until it is settled, in a process that knows its tenant and has
// added nothing for it for an hour.
func loneRequests() scenario {
	m := metric{"requests/outbox/lone", "requests", "goal 4"}
	return scenario{[]metric{m}, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c, count := memoryOutbox(), &requestCount{counts: map[string]int{}}
		memory := queues.NewMemory()
		memory.Now, c.Now = now, now
		c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, count.intercept), faults.Queues(memory, count.intercept), faults.Blobs(c.Blobs, count.intercept)
		room, err := newMailroom(ctx, c)
		if err != nil {
			return nil, err
		}
		room.writer = room.dispatcher.Writer()
		for range 2 {
			ahead.Add(int64(time.Hour))
			if _, err := room.dispatcher.Sweep(ctx); err != nil { // which closes the tenant
				return nil, err
			}
			count.begin()
			if err := room.add(ctx, "tenant", 1); err != nil {
				return nil, err
			}
			if err := room.dispatcher.Settled(ctx); err != nil {
				return nil, err
			}
			if wakes, err := room.host(ctx, c.Queues); err != nil || wakes > 0 {
				return nil, errors.Join(err, fmt.Errorf("%d messages were left to a wake-up", wakes))
			}
		}
		return []float64{float64(count.sum("") - 1)}, nil // without the look whether there are wake-ups
	}}
}
