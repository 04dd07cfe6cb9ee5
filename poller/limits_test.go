package poller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// sizedDocument returns a document whose compact text has n bytes.
func sizedDocument(t *testing.T, n int) *Document {
	t.Helper()
	d := newDocument("orders")
	d.extra = fields{"more": json.RawMessage(`""`)}
	text := testenv.Must(d.compact(maxDocument))(t)
	d.extra["more"] = json.RawMessage(`"` + strings.Repeat("x", n-len(text)) + `"`)
	return d
}

// A document at its limit is written, kept by both stores, and read unchanged; a larger one is refused before it is
// written.
func TestSizesOfDocuments(t *testing.T) {
	t.Parallel()
	b, table := BlobStore{Blobs: blobs.NewMemory()}, TableStore{Tables: tables.NewMemory()}
	testenv.OK(t, errors.Join(b.Create(t.Context()), table.Create(t.Context())))
	for n := maxDocument - 1; n <= maxDocument+1; n++ {
		text, err := sizedDocument(t, n).Encode()
		if n > maxDocument {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprint(maxDocument)) {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if d, err := Decode(text); err != nil || len(d.extra["more"]) != len(sizedDocument(t, n).extra["more"]) {
			t.Errorf("%d bytes cannot be read: %v", n, err)
		}
		for kind, store := range map[string]Store{"blob": b, "table": table} {
			name := fmt.Sprintf("orders-%d", n)
			if _, err := store.Swap(t.Context(), name, text, ""); err != nil {
				t.Fatalf("%s, %d bytes: %v", kind, n, err)
			}
			if state, err := store.Load(t.Context(), name); err != nil || !bytes.Equal(state.Data, text) {
				t.Errorf("%s, %d bytes: %d came back, %v", kind, n, len(state.Data), err)
			}
		}
	}
}

// A position at its limit is committed with the rest of the document at its longest; a longer one is refused.
func TestSizesOfPlaces(t *testing.T) {
	t.Parallel()
	frame := Cursor{Kind: "opaque", Value: "x"}
	least, err := (&Document{Version: documentVersion, PollerName: "place", Checkpoint: &Checkpoint{Cursor: frame}}).compact(maxCursor)
	if err != nil {
		t.Fatal(err)
	}
	for n := maxCursor - 1; n <= maxCursor+1; n++ {
		c := Cursor{Kind: "opaque", Value: strings.Repeat("x", n-len(least)+1)}
		err := c.check()
		if (err == nil) != (n <= maxCursor) || err != nil && !strings.Contains(err.Error(), fmt.Sprint(maxCursor)) {
			t.Errorf("%d bytes: %v", n, err)
		}
		store := BlobStore{Blobs: blobs.NewMemory()}
		testenv.OK(t, store.Create(t.Context()))
		d := newDocument("orders")
		d.Failure = &Failure{Error: strings.Repeat("<", maxErrorText), FirstAt: time.Unix(1, 0), LastAt: time.Unix(1, 0), NextAt: time.Unix(1, 0)}
		text, encodeErr := d.Encode()
		if encodeErr == nil {
			_, encodeErr = store.Swap(context.Background(), "orders", text, "")
		}
		if encodeErr != nil {
			t.Fatal(encodeErr)
		}
		_, resetErr := Operator{Store: store}.ResetToCursor(t.Context(), "orders", c, ChangeOptions{})
		v, showErr := Operator{Store: store}.Show(t.Context(), "orders")
		if (resetErr == nil) != (err == nil) || showErr != nil || v.Document.Cursor().Equal(c) != (err == nil) {
			t.Errorf("%d bytes: %v, %v", n, resetErr, showErr)
		}
	}
	for n := 62; n <= 64; n++ {
		if err := CheckName(strings.Repeat("n", n)); (err == nil) != (n <= 63) || err != nil && !strings.Contains(err.Error(), "63") {
			t.Errorf("a name of %d: %v", n, err)
		}
	}
}
