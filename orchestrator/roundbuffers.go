package orchestrator

import (
	"sync"

	"github.com/vibedata/roundhouse/tables"
)

// roundBuffers is the memory in which a round is made before it is stored: the rows of its transaction and their
// texts. A driver makes all its rounds in the same buffers, and passes them to the next driver of the process. So they
// do not have to grow for every orchestration. Stores must not keep the values they are given. The zero value is ready
// to use.
type roundBuffers struct {
	status  map[string]any // columns of the status row; they stay from round to round
	columns map[string]any // columns of the round's row
	ops     []tables.Op
	text    []byte // JSON of the round
	state   []byte // the longer texts of the status row
}

// maxBuffer bounds the buffers kept for the next driver: bytes of a text, entries of another kind.
const maxBuffer = 64 << 10

// statusColumns returns the map for a status row, empty.
func (b *roundBuffers) statusColumns() map[string]any {
	if b.status == nil {
		b.status = make(map[string]any, usualStatusColumns)
	}
	clear(b.status)
	return b.status
}

// usualStatusColumns is enough columns for most status rows.
const usualStatusColumns = 28

// roundColumns returns the map for a round's row, empty.
func (b *roundBuffers) roundColumns() map[string]any {
	if b.columns == nil {
		b.columns = map[string]any{}
	}
	clear(b.columns)
	return b.columns
}

// forget clears all data of an orchestration, so that none of it reaches the next one.
func (b *roundBuffers) forget() {
	clear(b.status)
	clear(b.columns)
	clear(b.ops[:cap(b.ops)])
	clear(b.text[:cap(b.text)])
	clear(b.state[:cap(b.state)])
	b.ops, b.text, b.state = b.ops[:0], b.text[:0], b.state[:0]
}

// bufferPool passes buffers from driver to driver. The zero value is ready to use.
type bufferPool struct{ pool sync.Pool } // of *roundBuffers, which hold nothing

func (p *bufferPool) get() *roundBuffers {
	if b, ok := p.pool.Get().(*roundBuffers); ok {
		return b
	}
	return &roundBuffers{}
}

// put returns unused buffers to the pool; nil is ignored.
func (p *bufferPool) put(b *roundBuffers) {
	if b == nil || cap(b.text) > maxBuffer || cap(b.state) > maxBuffer {
		return
	}
	b.forget()
	p.pool.Put(b)
}
