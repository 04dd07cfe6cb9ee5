package blobs_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/account"
)

// A blob that others made larger than MaxSize must not fill the memory.
func TestForeignSize(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/b/spill/named" {
			w.Header().Set("Content-Length", strconv.Itoa(blobs.MaxSize+1))
			return
		}
		chunk := make([]byte, 1<<20) // no length is named: it goes on until nobody reads
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	a, err := account.FromConnectionString(fmt.Sprintf("AccountName=devstoreaccount1;AccountKey=a2V5;TableEndpoint=%[1]s/t;QueueEndpoint=%[1]s/q;BlobEndpoint=%[1]s/b", server.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdleConnections)
	store, err := blobs.NewAzure(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"named", "endless"} {
		if data, err := store.Get(t.Context(), "spill", name); !errors.Is(err, blobs.ErrTooLarge) {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(data), err, blobs.ErrTooLarge)
		}
	}
}
