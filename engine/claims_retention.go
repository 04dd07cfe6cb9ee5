package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// settleGrace is the time after its end for which an orchestration still counts as running, because its message is
// requeued or dead-lettered a little later.
const settleGrace = 24 * time.Hour

// SweepClaims checks one page of the container of Claims and deletes unreferenced inputs that were written before a
// time. next continues behind the page and is "" after the last one. before must be days in the past, because a
// message is sent a little later than it is packed.
//
// An input is deleted if all of these conditions hold, checked in this order, so that no moving message is missed.
// The engine's queue and its poison queue are empty, hidden messages included. No orchestration of the engine with
// the correlation id is running. No dead letter has the correlation id, whatever its status: a pending one is kept
// for ever, and one that was sent again is kept longer than a message can wait. Blobs of unknown engines are kept.
func (p *Pipeline) SweepClaims(ctx context.Context, before time.Time, from string) (removed int, next string, err error) {
	c := p.config.Claims
	if c == nil {
		return 0, "", nil
	}
	removed, next, err = blobs.Sweep(ctx, c.blobs, c.container, before, from, p.unreferenced)
	if err != nil {
		return removed, next, fmt.Errorf("retention of the inputs in %s: %w", c.container, err)
	}
	return removed, next, nil
}

// blobOwner is the engine and the correlation id of a blob.
type blobOwner struct{ engine, correlationID string }

// blobOwnerOf parses the name of a blob; ok is false for a name that Claims has not given.
func blobOwnerOf(name string) (blobOwner, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return blobOwner{}, false
	}
	engine, err1 := tables.UnescapeSegment(parts[0])
	id, err2 := tables.UnescapeSegment(parts[1])
	return blobOwner{engine, id}, errors.Join(err1, err2, checkID("engine", engine), checkID("correlation id", id)) == nil
}

// unreferenced returns the names without references.
func (p *Pipeline) unreferenced(ctx context.Context, names []string) ([]string, error) {
	byEngine := map[string]map[string][]string{} // names by engine and correlation id
	for _, name := range names {
		c, ok := blobOwnerOf(name)
		if _, known := p.byName[c.engine]; !ok || !known {
			continue
		}
		if byEngine[c.engine] == nil {
			byEngine[c.engine] = map[string][]string{}
		}
		byEngine[c.engine][c.correlationID] = append(byEngine[c.engine][c.correlationID], name)
	}
	var free []string
	for engine, byID := range byEngine {
		empty, err := p.queueEmpty(ctx, p.byName[engine].Queue)
		if err != nil {
			return nil, err
		}
		if !empty {
			p.config.Log.InfoContext(ctx, "inputs in blobs are kept: the engine's queue is not empty", "engine", engine, "blobs", len(byID))
			continue
		}
		if err := p.keepRunning(ctx, engine, byID); err != nil {
			return nil, err
		}
		for id, names := range byID {
			dead, err := p.config.DeadLetters.List(ctx, DeadLetterFilter{Engines: slices.Sorted(maps.Keys(p.byName)), CorrelationID: id, Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(dead.DeadLetters) == 0 {
				free = append(free, names...)
			}
		}
	}
	return free, nil
}

// queueEmpty reports whether a queue and its poison queue hold no message. The count of storage is never too low.
func (p *Pipeline) queueEmpty(ctx context.Context, queue string) (bool, error) {
	for _, name := range []string{queue, queue + PoisonSuffix} {
		n, err := p.config.Queues.Length(ctx, name)
		if err != nil && !errors.Is(err, queues.ErrNotFound) {
			return false, err
		}
		if n > 0 {
			return false, nil
		}
	}
	return true, nil
}

// keepRunning removes from byID the correlation ids whose orchestrations are running.
func (p *Pipeline) keepRunning(ctx context.Context, engine string, byID map[string][]string) error {
	const page = 1000
	settled := p.config.Now().Add(-settleGrace)
	for next, more := "", true; more; more = next != "" {
		var found []orchestrator.Summary
		var err error
		found, next, err = p.config.Runtime.List(ctx, orchestrator.Filter{Prefix: engine + "-", Orchestrator: engine}, page, next)
		if err != nil {
			return err
		}
		for _, s := range found {
			if !s.Ended() || s.EndedAt.After(settled) {
				delete(byID, s.CorrelationID)
			}
		}
	}
	return nil
}
