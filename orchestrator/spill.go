package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/tables"
)

// encode returns the columns of a round. Large payloads go into blobs first, and so does a round that does not fit its
// row, so that a row names only blobs that exist. blobs reports whether the round has any.
func (j *journal) encode(ctx context.Context, b *roundBuffers, id string, execution int, r round) (columns map[string]any, blobs bool, err error) {
	spilled, err := j.spill(ctx, id, execution, r)
	if err != nil {
		return nil, false, err
	}
	columns, data, err := j.codec.encode(b, spilled)
	if err != nil || data == nil {
		return columns, spilled.names(), err
	}
	name := blobOf(execution, hashOf(data))
	if err := j.blobs.Put(ctx, j.container, blobName(id, name), data); err != nil {
		return nil, false, fmt.Errorf("a round that its row does not hold: %w", err)
	}
	columns[columnBlob] = name
	return columns, true, nil
}

func (j *journal) spill(ctx context.Context, id string, execution int, r round) (round, error) {
	asIs := func(e event) bool {
		return len(e.Payload) < spillFrom && e.Blob == "" && !e.reused() && e.Inherited == nil
	}
	if every(r.Learned, asIs) && every(r.Decided, asIs) {
		return r, nil
	}
	out := r
	out.Learned, out.Decided = slices.Clone(r.Learned), slices.Clone(r.Decided)
	for _, events := range [][]event{out.Learned, out.Decided} {
		for i := range events {
			e := &events[i]
			if e.reused() {
				e.Payload = nil // it is stored already
			}
			if e.Inherited != nil {
				h := *e.Inherited
				h.Unread = slices.Clone(h.Unread)
				for i := range h.Unread {
					if err := j.spillOne(ctx, id, execution, &h.Unread[i]); err != nil {
						return out, err
					}
				}
				e.Inherited = &h
			}
			if err := j.spillOne(ctx, id, execution, e); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func every(events []event, is func(event) bool) bool {
	return !slices.ContainsFunc(events, func(e event) bool { return !is(e) })
}

// spillOne puts a large payload into a blob of the execution that the round belongs to, even if the payload was read
// from a blob of another execution.
func (j *journal) spillOne(ctx context.Context, id string, execution int, e *event) error {
	e.Blob = ""
	if len(e.Payload) < spillFrom {
		return nil
	}
	e.Blob = blobOf(execution, hashOf(e.Payload))
	if err := j.blobs.Put(ctx, j.container, blobName(id, e.Blob), e.Payload); err != nil {
		return fmt.Errorf("spill the payload of %s: %w", e.describe(), err)
	}
	e.Payload = nil
	return nil
}

func hashOf(payload json.RawMessage) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// blobOf names a blob of an execution's rounds within its orchestration. The execution is part of the name because its
// blobs are deleted with its rounds.
func blobOf(execution int, hash string) string { return fmt.Sprintf("%08d/%s", execution, hash) }

// blobHash returns the hash of a blob's contents. Older versions used the hash alone as the name.
func blobHash(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// blobName returns the name of an orchestration's blob in the container.
func blobName(id, name string) string { return tables.EscapeSegment(id) + "/" + name }
