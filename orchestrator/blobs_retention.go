package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// SweepBlobs checks one page of the container and deletes unneeded payloads that were written before a time; dead
// processes leave such payloads. next continues after the page and is "" after the last one. before must be at least
// days in the past, because a payload is written before the round or message that names it.
//
// A payload is deleted when its orchestration has no rows, when the rounds of its execution are gone, or, if it
// belongs to no execution, when no round names it. A payload without an execution may belong to a message, too. wanted
// reports whether a queue or a dead letter can still hold a message for the orchestration; nil means that none can.
// When a round cannot be read, the payloads that it may name are kept. Blobs with other names are skipped.
func (r *Runtime) SweepBlobs(ctx context.Context, before time.Time, continuation string, wanted func(ctx context.Context, orchestration string) (bool, error),
) (removed int, next string, err error) {
	removed, next, err = blobs.Sweep(ctx, r.config.Blobs, r.config.Container, before, continuation, func(ctx context.Context, names []string) ([]string, error) {
		return r.unneededBlobs(ctx, names, wanted)
	})
	if err != nil {
		return removed, next, fmt.Errorf("retention of the payloads of orchestrations: %w", err)
	}
	return removed, next, nil
}

// payloadBlob is the parsed name of an orchestration's blob.
type payloadBlob struct {
	name, id, hash string
	execution      int // 0 for a blob that belongs to no execution
}

// payloadOf parses the name of a blob; ok is false for a name that no runtime has given.
func payloadOf(name string) (payloadBlob, bool) {
	parts := strings.Split(name, "/")
	p := payloadBlob{name: name, hash: parts[len(parts)-1]}
	id, err := tables.UnescapeSegment(parts[0])
	if p.id = id; err != nil || tables.EscapeSegment(id) != parts[0] || !validID(id) || p.hash == "" || !validBlob(p.hash) {
		return p, false
	}
	switch len(parts) {
	case 2:
		return p, true
	case 3:
		p.execution, err = strconv.Atoi(parts[1])
		return p, err == nil && p.execution > 0 && fmt.Sprintf("%08d", p.execution) == parts[1]
	default:
		return p, false
	}
}

// unneededBlobs returns the names of the unneeded blobs.
func (r *Runtime) unneededBlobs(ctx context.Context, names []string, wanted func(context.Context, string) (bool, error)) ([]string, error) {
	byID := map[string][]payloadBlob{}
	for _, name := range names {
		if p, ok := payloadOf(name); ok {
			byID[p.id] = append(byID[p.id], p)
		}
	}
	var free []string
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		n, err := r.needs(ctx, id, byID[id])
		if err != nil {
			return nil, err
		}
		var loose []string
		for _, p := range byID[id] {
			switch {
			case n.needs(p):
			case p.execution > 0:
				free = append(free, p.name)
			default:
				loose = append(loose, p.name)
			}
		}
		if len(loose) > 0 && wanted != nil {
			keep, err := wanted(ctx, id)
			if err != nil {
				return nil, err
			}
			if keep {
				continue
			}
		}
		free = append(free, loose...)
	}
	return free, nil
}

// needs holds which blobs the rounds of an orchestration need.
type needs struct {
	executions map[int]bool    // those that have rounds
	named      map[string]bool // hashes of the named payloads that belong to no execution
	damaged    bool            // a round cannot be read, so the blobs that it names are unknown
}

func (n needs) needs(p payloadBlob) bool {
	return n.damaged || p.execution > 0 && n.executions[p.execution] || p.execution == 0 && n.named[p.hash]
}

// needs reads the rounds of an orchestration. Their contents are decoded only if one of the payloads belongs to no
// execution.
func (r *Runtime) needs(ctx context.Context, id string, payloads []payloadBlob) (needs, error) {
	n := needs{executions: map[int]bool{}, named: map[string]bool{}}
	loose := slices.ContainsFunc(payloads, func(p payloadBlob) bool { return p.execution == 0 })
	q := tables.Query{Partition: tables.EscapeKey(id), From: roundPrefix, To: tables.PrefixEnd(roundPrefix)}
	if !loose {
		q.Select = []string{columnEncoding}
	}
	for e, err := range tables.All(ctx, r.config.Tables, r.config.Table, q) {
		if err != nil {
			return n, fmt.Errorf("rounds of orchestration %s: %w", id, err)
		}
		execution, _, ok := parseRoundKey(e.Row)
		if !ok {
			n.damaged = true
		}
		n.executions[execution] = true
		if !loose {
			continue
		}
		if blob := e.String(columnBlob); blob != "" {
			n.named[blob] = true
			continue
		}
		round, err := decodeRound(e)
		n.damaged = n.damaged || err != nil
		for _, e := range slices.Concat(round.Learned, round.Decided) {
			n.name(e)
		}
	}
	return n, nil
}

// name records the blobs that an event names, and those of the events that it inherits.
func (n needs) name(e event) {
	n.named[e.Blob] = true
	for _, u := range e.Inherited.unread() {
		n.name(u)
	}
}
