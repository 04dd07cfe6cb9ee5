package orchestrator

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/vibedata/roundhouse/tables"
)

// How a round becomes columns of its row.
const (
	columnEncoding = "Encoding"
	columnData     = "Data" // Data, Data2, Data3 ...
	columnCommit   = "Commit"

	// What a round means is a version of its own, which stands behind the encoding; none is version 1. A program does not
	// read newer ones than its own.
	schemaSeparator = ";"
	schemaVersion   = ";2"

	encodingJSON    = "json"
	encodingDeflate = "json+deflate"

	compressFrom = 1 << 10  // bytes of JSON below which compressing costs more than it saves
	chunkBytes   = 64 << 10 // a binary property holds no more
	maxChunks    = 13       // leaves room for the other columns below the 1 MiB of an entity
	maxDecoded   = 64 << 20 // no round is near this; it bounds what damaged data can make us allocate
)

// codec turns rounds into columns and back. The zero value works.
type codec struct {
	deflaters sync.Pool // of *flate.Writer, which are expensive to make
}

// encode gives the columns that hold r. Too large is tables.ErrTooLarge.
func (c *codec) encode(r round) (map[string]any, error) {
	text, err := marshal(r)
	if err != nil {
		return nil, err
	}
	encoding, data := encodingJSON, []byte(text)
	if len(data) >= compressFrom {
		encoding, data = encodingDeflate, c.deflate(data)
	}
	if len(data) > maxChunks*chunkBytes {
		return nil, fmt.Errorf("a round of %d events and %d decisions takes %d bytes, %d fit a row: %w",
			len(r.Learned), len(r.Decided), len(data), maxChunks*chunkBytes, tables.ErrTooLarge)
	}
	columns := map[string]any{columnEncoding: encoding + schemaVersion}
	for i := 1; ; i++ {
		chunk := data[:min(len(data), chunkBytes)]
		columns[chunkColumn(i)] = chunk
		if data = data[len(chunk):]; len(data) == 0 {
			return columns, nil
		}
	}
}

// decodeRound is the inverse of encode. What it cannot read is ErrCorrupt.
func decodeRound(e tables.Entity) (round, error) {
	var r round
	var data []byte
	for i := 1; i <= maxChunks; i++ {
		chunk := e.Bytes(chunkColumn(i))
		if len(chunk) == 0 {
			break
		}
		data = append(data, chunk...)
	}
	encoding, schema, versioned := strings.Cut(e.String(columnEncoding), schemaSeparator)
	known := encoding == encodingJSON || encoding == encodingDeflate
	if versioned && known && schemaSeparator+schema != schemaVersion {
		return r, fmt.Errorf("row %s of %s has the encoding %q: %w", e.Row, e.Partition, e.String(columnEncoding), ErrNewerSchema)
	}
	switch encoding {
	case encodingJSON:
	case encodingDeflate:
		var err error
		data, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxDecoded))
		if err != nil {
			return r, fmt.Errorf("row %s of %s: %w: %w", e.Row, e.Partition, ErrCorrupt, err)
		}
	default:
		return r, fmt.Errorf("row %s of %s has the unknown encoding %q: %w", e.Row, e.Partition, encoding, ErrCorrupt)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("row %s of %s: %w: %w", e.Row, e.Partition, ErrCorrupt, err)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("row %s of %s: %w", e.Row, e.Partition, err)
	}
	return r, nil
}

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
		w, _ = flate.NewWriter(&buf, flate.BestSpeed) // the level is right
	}
	defer c.deflaters.Put(w)
	w.Write(data) // a bytes.Buffer takes everything
	w.Close()
	return buf.Bytes()
}
