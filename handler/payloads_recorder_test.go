package handler_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// recorder looks at everything that is written to storage, when it is written, for a text.
type recorder struct {
	marker string

	mu    sync.Mutex
	found map[string]bool // where it was
	seen  int             // values looked at
}

// watch puts the recorder around the stores of an app.
func (r *recorder) watch(c *handler.Config) {
	c.Tables, c.Queues, c.Blobs = watchedTables{c.Tables, r}, watchedQueues{c.Queues, r}, watchedBlobs{c.Blobs, r}
}

// look searches a value, in every form that it can be brought into.
func (r *recorder) look(where string, value []byte) {
	there := r.holds(value, 3)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if there {
		r.found[where] = true
	}
}

// holds reports whether a value holds the marker: as it is, in base64 at any offset, in hexadecimal, or in what the value is
// the base64, the hexadecimal or the deflated form of.
func (r *recorder) holds(value []byte, depth int) bool {
	for _, form := range forms(r.marker) {
		if bytes.Contains(value, []byte(form)) {
			return true
		}
	}
	if depth == 0 {
		return false
	}
	var inner [][]byte
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, err := encoding.DecodeString(string(value)); err == nil && len(data) > 0 {
			inner = append(inner, data)
		}
	}
	if data, err := hex.DecodeString(string(value)); err == nil && len(data) > 0 {
		inner = append(inner, data)
	}
	if data, _ := io.ReadAll(flate.NewReader(bytes.NewReader(value))); len(data) > len(value)/2 && len(data) > 0 {
		inner = append(inner, data)
	}
	return slices.ContainsFunc(inner, func(data []byte) bool { return r.holds(data, depth-1) })
}

// forms are a text, its hexadecimal form, and what its base64 has in common whatever stands before and behind it.
func forms(text string) []string {
	all := []string{text, hex.EncodeToString([]byte(text))}
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		all = append(all, encoded[4:len(encoded)-4])
	}
	return all
}

// places are where the text was, sorted.
func (r *recorder) places() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.found))
}

type watchedTables struct {
	tables.Store
	r *recorder
}

func (s watchedTables) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	for _, op := range ops {
		s.r.look("keys of "+table, []byte(op.Entity.Key.String()))
		var row bytes.Buffer // columns that continue each other, such as the chunks of a round
		for _, name := range slices.Sorted(maps.Keys(op.Entity.Properties)) {
			switch value := op.Entity.Properties[name].(type) {
			case string:
				s.r.look("table "+table+" column "+name, []byte(value))
				row.WriteString(value)
			case []byte:
				s.r.look("table "+table+" column "+name, value)
				row.Write(value)
			}
		}
		s.r.look("table "+table, row.Bytes())
	}
	return s.Store.Apply(ctx, table, ops...)
}

type watchedQueues struct {
	queues.Store
	r *recorder
}

func (s watchedQueues) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	s.r.look("queue "+queue, body)
	return s.Store.Send(ctx, queue, body, delay)
}

type watchedBlobs struct {
	blobs.Store
	r *recorder
}

func (s watchedBlobs) Put(ctx context.Context, container, name string, data []byte) error {
	s.r.look("names of "+container, []byte(name))
	s.r.look("container "+container, data)
	return s.Store.Put(ctx, container, name, data)
}

func (s watchedBlobs) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	s.r.look(fmt.Sprintf("container %s (conditional)", container), data)
	return s.Store.PutIf(ctx, container, name, data, etag)
}
