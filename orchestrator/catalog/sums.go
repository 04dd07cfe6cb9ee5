package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// buckets is the number of parts into which the orchestrations are divided for the comparison with the index. A
	// part that differs costs the marks of its orchestrations; eight bytes for each have to fit a property of the
	// stored pass.
	buckets = 4096
	// readPages bounds the pages of rows, or of orchestrations, that one call of Repair reads.
	readPages = 10
)

// sums holds, for each bucket of ids, the sum over the rows that its orchestrations should have, less the sum over
// the existing rows. A sum that is not 0 shows that rows differ. Empty sums were not computed, and show nothing.
type sums []uint64

// add adds an expected row to the sum, or subtracts an existing one.
func (s sums) add(row tables.Entity, implied bool) {
	id := row.String(columnID)
	var text []byte
	for _, part := range []string{row.Row, id, row.String(columnOrchestrator), row.String(columnScope)} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	value := hash(text)
	if !implied {
		value = -value
	}
	s[hash([]byte(id))%buckets] += value
}

// hash must be strong: with a simple one, sums of similar keys could be equal.
func hash(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:8])
}

// differ reports whether the orchestration, or another one in its bucket, may have wrong rows.
func (s sums) differ(id string) bool {
	return len(s) == 0 || s[hash([]byte(id))%buckets] != 0
}

// equal reports whether no row is wrong.
func (s sums) equal() bool {
	for _, sum := range s {
		if sum != 0 {
			return false
		}
	}
	return len(s) > 0
}

func (s sums) encode() []byte {
	var out []byte
	for _, sum := range s {
		out = binary.BigEndian.AppendUint64(out, sum)
	}
	return out
}

// decodeSums reads the output of encode; any other text yields empty sums.
func decodeSums(text []byte) sums {
	if len(text) != 8*buckets {
		return nil
	}
	s := make(sums, buckets)
	for i := range s {
		s[i] = binary.BigEndian.Uint64(text[8*i:])
	}
	return s
}

// sumOrchestrations runs the first step of a pass: it adds the expected rows of a slice of the orchestrations.
func (c *Catalog) sumOrchestrations(ctx context.Context, p pass) (next string, err error) {
	next = p.next
	for range readPages {
		there, more, err := c.listTruth(ctx, next)
		if err != nil {
			return "", err
		}
		for _, s := range there {
			e := entryFor(s)
			for _, name := range e.all() {
				p.sums.add(e.row(name), true)
			}
		}
		if next = more; next == "" {
			break
		}
	}
	return next, nil
}

// sumRows runs the second step: it subtracts the existing rows.
func (c *Catalog) sumRows(ctx context.Context, p pass) (next string, err error) {
	return c.eachPage(ctx, p.next, func(rows []tables.Entity) error {
		for _, row := range rows {
			p.sums.add(row, false)
		}
		return nil
	})
}

// eachPage calls f with a slice of the rows, of any key, and returns the start of the next slice, "" for none.
func (c *Catalog) eachPage(ctx context.Context, from string, f func([]tables.Entity) error) (next string, err error) {
	next = from
	for range readPages {
		rows, more, err := c.queryRows(ctx, tables.Query{Partition: listPartition, From: next, Limit: maxPage})
		if err == nil {
			err = f(rows)
		}
		if err != nil || !more {
			return "", err
		}
		next = rows[len(rows)-1].Row + " " // the first possible successor: keys have no control characters
	}
	return next, nil
}
