package orchestrator

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// These are the columns in which a round is stored.
const (
	columnEncoding = "Encoding"
	columnData     = "Data" // Data, Data2, Data3 ...
	columnBlob     = "Blob" // names the blob that holds the data instead
	columnCommit   = "Commit"

	// The version of the contents of a round follows the encoding; without one, it is version 1. A program does not
	// read versions newer than its own. 2 has attempts; 3 has rounds in blobs, and turns that are divided over rounds.
	schemaSeparator = ";"
	schemaVersion   = "3"

	encodingJSON    = "json"
	encodingDeflate = "json+deflate"

	compressFrom = 1 << 10  // bytes of JSON below which compressing costs more than it saves
	chunkBytes   = 64 << 10 // a binary property holds no more
	maxChunks    = 13       // leaves room for the other columns below the 1 MiB of an entity

	// maxText bounds the JSON of a round in bytes, for writers and readers.
	maxText = blobs.MaxSize
)

// codec converts rounds to columns and back. The zero value is ready to use.
type codec struct {
	deflaters sync.Pool // of *flate.Writer, which are expensive to make
}

// encode returns the columns for r. For a round that does not fit its row, it also returns the data that the caller
// has to put into a blob. Both are valid until the next use of b. A round over the size limit is tables.ErrTooLarge.
func (c *codec) encode(b *roundBuffers, r round) (columns map[string]any, blob []byte, err error) {
	text, err := appendRound(b.text[:0], r)
	b.text = text
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxText {
		return nil, nil, fmt.Errorf("a round of %d events and %d decisions takes %d bytes of JSON, %d are allowed: %w",
			len(r.Learned), len(r.Decided), len(text), maxText, tables.ErrTooLarge)
	}
	columns = b.roundColumns()
	data := text
	if len(data) < compressFrom {
		columns[columnEncoding] = encodingJSON + schemaSeparator + schemaVersion
	} else {
		columns[columnEncoding], data = encodingDeflate+schemaSeparator+schemaVersion, c.deflate(data)
	}
	if len(data) > maxChunks*chunkBytes {
		return columns, data, nil
	}
	for i := 1; ; i++ {
		chunk := data[:min(len(data), chunkBytes)]
		columns[chunkColumn(i)] = chunk
		if data = data[len(chunk):]; len(data) == 0 {
			return columns, nil, nil
		}
	}
}

// decodeRound is the inverse of encode. For a round in a blob, the caller must have put its data into columnData
// (journal.fillBlobs). A round that cannot be decoded is ErrCorrupt.
func decodeRound(e tables.Entity) (round, error) { return new(roundReader).decode(e) }

// decode is decodeRound, with the state that the reader keeps from previous rounds.
func (d *roundReader) decode(e tables.Entity) (round, error) {
	var r round
	data := e.Bytes(columnData)
	for i := 2; i <= maxChunks; i++ {
		chunk := e.Bytes(chunkColumn(i))
		if len(chunk) == 0 {
			break
		}
		data = append(data, chunk...)
	}
	encoding, schema, _ := strings.Cut(e.String(columnEncoding), schemaSeparator)
	if encoding != encodingJSON && encoding != encodingDeflate {
		return r, fmt.Errorf("row %s of %s has the unknown encoding %q: %w", e.Row, e.Partition, encoding, ErrCorrupt)
	}
	if schema != "" && schema != "2" && schema != schemaVersion {
		return r, fmt.Errorf("row %s of %s has the encoding %q: %w", e.Row, e.Partition, e.String(columnEncoding), ErrNewerSchema)
	}
	if encoding == encodingDeflate {
		var err error
		if data, err = d.inflate(data); err != nil {
			return r, fmt.Errorf("row %s of %s: %w: %w", e.Row, e.Partition, ErrCorrupt, err)
		}
	}
	r, err := d.read(data)
	if err != nil {
		return r, fmt.Errorf("row %s of %s: %w: %w", e.Row, e.Partition, ErrCorrupt, err)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("row %s of %s: %w", e.Row, e.Partition, err)
	}
	return r, nil
}

// inflate decompresses the output of deflate. Its output is bounded by the size of the largest round.
func (d *roundReader) inflate(data []byte) ([]byte, error) {
	from := bytes.NewReader(data)
	if d.inflater == nil {
		d.inflater = flate.NewReader(from)
	} else if err := d.inflater.(flate.Resetter).Reset(from, nil); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Grow(min(usualRatio*len(data), maxText))
	n, err := text.ReadFrom(io.LimitReader(d.inflater, maxText+1))
	if err == nil && n > maxText {
		err = fmt.Errorf("more than %d bytes", maxText)
	}
	return text.Bytes(), err
}

// usualRatio is the usual compression ratio of rounds.
const usualRatio = 6

func chunkColumn(i int) string {
	if i == 1 {
		return columnData
	}
	return columnData + strconv.Itoa(i)
}

func (c *codec) deflate(data []byte) []byte {
	var buf bytes.Buffer
	w, ok := c.deflaters.Get().(*flate.Writer)
	if ok {
		w.Reset(&buf)
	} else {
		w, _ = flate.NewWriter(&buf, flate.BestSpeed) // the level is valid
	}
	defer c.deflaters.Put(w)
	w.Write(data) // a bytes.Buffer accepts all writes
	w.Close()
	return buf.Bytes()
}
