package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// buckets is how many parts the orchestrations are divided into to compare them with the index. One that differs costs the
	// marks of its orchestrations; eight bytes for each have to fit a property of the stored pass.
	buckets = 4096
	// readPages bounds the pages of rows, or of orchestrations, that one call of Repair reads.
	readPages = 10
)

// sums holds, for each bucket of ids, the sum over the rows that its orchestrations should have, less the sum over the rows
// that there are. A sum that is not 0 shows that rows differ. An empty one was not made, and shows nothing.
type sums []uint64

// add adds the row if it should be there, and takes it away if it is.
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

// hash is a good one: the sums of similar keys by a simpler one could be the same.
func hash(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:8])
}

// differ reports whether rows of the orchestration, or of one in the same bucket, may be wrong.
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

// decodeSums reads what encode has made; of anything else it makes sums that were not made.
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

// sumOrchestrations is the first step of a pass: it adds the rows that a slice of the orchestrations should have.
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

// sumRows is the second step: it takes away the rows that there are.
func (c *Catalog) sumRows(ctx context.Context, p pass) (next string, err error) {
	return c.eachPage(ctx, p.next, func(rows []tables.Entity) error {
		for _, row := range rows {
			p.sums.add(row, false)
		}
		return nil
	})
}

// eachPage calls f with a slice of the rows, whatever their keys, and returns where the next slice begins, "" for none.
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
		next = rows[len(rows)-1].Row + " " // the first that can follow: keys have no control characters
	}
	return next, nil
}
