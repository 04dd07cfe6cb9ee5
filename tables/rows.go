package tables

import "slices"

// maxChunk bounds the rows that an insert in the middle moves.
const maxChunk = 512

// firstChunk is the initial capacity of a set of rows.
const firstChunk = 8

// rows is an ordered set of rows by key: chunks of at most maxChunk rows, so that both appending and inserting
// anywhere stay cheap when a partition grows large.
type rows struct {
	chunks [][]*row
	room   [1][]*row // the array of chunks while it has one element
}

type row struct {
	key     string
	version uint64 // unique among all rows ever made
	props   []property
	few     [fewProperties]property // the properties, if they fit
}

// fewProperties is the number of properties of most rows that are written often.
const fewProperties = 3

// newRow returns a row with a deep copy of properties.
func newRow(key string, version uint64, props map[string]any) *row {
	r := &row{key: key, version: version}
	room := r.few[:0:len(r.few)]
	if len(props) > len(r.few) {
		room = make([]property, 0, len(props))
	}
	r.props = stored(room, props)
	return r
}

// find returns the position of the first row whose key is not below key, and whether it has that key. The position may
// be the end of the last chunk.
func (r *rows) find(key string) (chunk, index int, found bool) {
	last := len(r.chunks) - 1
	if last < 0 {
		return 0, 0, false
	}
	// Appends dominate: look at the end first.
	if tail := r.chunks[last]; CompareKeys(tail[len(tail)-1].key, key) < 0 {
		return last, len(tail), false
	}
	chunk, _ = slices.BinarySearchFunc(r.chunks, key, func(c []*row, key string) int {
		return CompareKeys(c[len(c)-1].key, key)
	})
	index, found = slices.BinarySearchFunc(r.chunks[chunk], key, func(row *row, key string) int {
		return CompareKeys(row.key, key)
	})
	return chunk, index, found
}

// get returns the row with a key, or nil.
func (r *rows) get(key string) *row {
	if c, i, found := r.find(key); found {
		return r.chunks[c][i]
	}
	return nil
}

// put adds a row or replaces the one with the same key.
func (r *rows) put(added *row) {
	c, i, found := r.find(added.key)
	switch {
	case found:
		r.chunks[c][i] = added
		return
	case len(r.chunks) == 0:
		r.chunks = append(r.room[:0], make([]*row, 0, firstChunk))
	case len(r.chunks[c]) >= maxChunk && i == maxChunk:
		r.chunks = append(r.chunks, nil)
		c, i = c+1, 0
	case len(r.chunks[c]) >= maxChunk:
		full := r.chunks[c]
		r.chunks = slices.Insert(r.chunks, c+1, slices.Clone(full[maxChunk/2:]))
		clear(full[maxChunk/2:])
		r.chunks[c] = full[:maxChunk/2]
		if i > maxChunk/2 {
			c, i = c+1, i-maxChunk/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, added)
}

// remove removes the row with a key, if it exists.
func (r *rows) remove(key string) {
	c, i, found := r.find(key)
	if !found {
		return
	}
	r.chunks[c] = slices.Delete(r.chunks[c], i, i+1)
	if len(r.chunks[c]) == 0 {
		r.chunks = slices.Delete(r.chunks, c, c+1)
	}
}

// from iterates over the rows whose keys are not below key, in order.
func (r *rows) from(key string) func(yield func(*row) bool) {
	return func(yield func(*row) bool) {
		c, i, _ := r.find(key)
		for ; c < len(r.chunks); c, i = c+1, 0 {
			for ; i < len(r.chunks[c]); i++ {
				if !yield(r.chunks[c][i]) {
					return
				}
			}
		}
	}
}
