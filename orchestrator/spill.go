package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// encode spills what is large, so that the round fits its row and names only blobs that exist.
func (j *journal) encode(ctx context.Context, id string, r round) (map[string]any, error) {
	for _, threshold := range []int{spillFrom, spillTight} {
		spilled, err := j.spill(ctx, id, r, threshold)
		if err != nil {
			return nil, err
		}
		columns, err := j.codec.encode(spilled)
		if err == nil || !errors.Is(err, tables.ErrTooLarge) || threshold == spillTight {
			return columns, err
		}
	}
	return nil, nil // unreachable unless the loop above is empty
}

func (j *journal) spill(ctx context.Context, id string, r round, threshold int) (round, error) {
	asIs := func(e event) bool { return len(e.Payload) < threshold && !e.reused() && e.Inherited == nil }
	if every(r.Learned, asIs) && every(r.Decided, asIs) {
		return r, nil
	}
	out := round{Learned: make([]event, len(r.Learned)), Decided: make([]event, len(r.Decided))}
	copy(out.Learned, r.Learned)
	copy(out.Decided, r.Decided)
	for _, events := range [][]event{out.Learned, out.Decided} {
		for i := range events {
			e := &events[i]
			if e.reused() {
				e.Payload = nil // it is stored already
			}
			if e.Inherited != nil {
				h := *e.Inherited
				h.Unread = append([]event(nil), h.Unread...)
				for i := range h.Unread {
					if err := j.spillOne(ctx, id, &h.Unread[i], threshold); err != nil {
						return out, err
					}
				}
				e.Inherited = &h
			}
			if err := j.spillOne(ctx, id, e, threshold); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func every(events []event, is func(event) bool) bool {
	return !slices.ContainsFunc(events, func(e event) bool { return !is(e) })
}

func (j *journal) spillOne(ctx context.Context, id string, e *event, threshold int) error {
	if len(e.Payload) < threshold {
		return nil
	}
	e.Blob = hashOf(e.Payload)
	if err := j.blobs.Put(ctx, j.container, blobName(id, e.Blob), e.Payload); err != nil {
		if errors.Is(err, blobs.ErrTooLarge) {
			err = fmt.Errorf("%w: keep it elsewhere and hand over a reference", err)
		}
		return fmt.Errorf("spill the payload of %s: %w", e.describe(), err)
	}
	e.Payload = nil
	return nil
}

func hashOf(payload json.RawMessage) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

func blobName(id, hash string) string {
	return strings.Join([]string{tables.EscapeSegment(id), hash}, "/")
}
