package azure_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A blob from another program that is larger than MaxSize must not fill the memory.
func TestForeignSize(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/b/spill/named" {
			w.Header().Set("Content-Length", strconv.Itoa(blobs.MaxSize+1))
			return
		}
		chunk := make([]byte, 1<<20) // no length is named: the body continues until the client stops reading
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	store := storeAt(t, server.URL)
	for _, name := range []string{"named", "endless"} {
		if data, err := store.Get(t.Context(), "spill", name); !errors.Is(err, blobs.ErrTooLarge) {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(data), err, blobs.ErrTooLarge)
		}
	}
}

// A page of the service may be empty and still have a marker; a call sends one request.
func TestListMarkers(t *testing.T) {
	t.Parallel()
	pages := map[string]string{ // by marker
		"":           `<Blobs/><NextMarker>2!8!a+b&amp;c=</NextMarker>`,
		"2!8!a+b&c=": `<Blobs><Blob><Name>p/1</Name></Blob><Blob><Name Encoded="true">p%2F%EF%BF%BE</Name></Blob></Blobs><NextMarker>end</NextMarker>`,
		"end":        `<Blobs/><NextMarker/>`,
	}
	requests := make(chan url.Values, len(pages)+1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		requests <- query
		w.Header().Set("Content-Type", "application/xml")
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="spill">%s</EnumerationResults>`, pages[query.Get("marker")])
	}))
	t.Cleanup(server.Close)
	store := storeAt(t, server.URL)
	names, next, err := store.List(t.Context(), "spill", "p/", "")
	if err != nil || len(names) != 0 || next == "" {
		t.Fatalf("the first page is %q, next %q, %v, want an empty one with a next", names, next, err)
	}
	want := url.Values{"comp": {"list"}, "restype": {"container"}, "prefix": {"p/"}, "maxresults": {"1000"}}
	if diff := cmp.Diff(want, <-requests); diff != "" || len(requests) != 0 {
		t.Errorf("%d more requests, the first (-want +got):\n%s", len(requests), diff)
	}
	var got []string
	for name, err := range blobs.All(t.Context(), store, "spill", "p/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if diff := cmp.Diff([]string{"p/1", "p/\ufffe"}, got); diff != "" || len(requests) != len(pages) {
		t.Errorf("%d requests (-want +got):\n%s", len(requests), diff)
	}
}

// A malformed answer must not pass for an empty list.
func TestListOfAnotherForm(t *testing.T) {
	t.Parallel()
	const begin = `<?xml version="1.0" encoding="utf-8"?><EnumerationResults>`
	for name, body := range map[string]string{
		"cut":        begin + `<Blobs><Blob><Name>p`,
		"no list":    begin + `<NextMarker/></EnumerationResults>`,
		"no name":    begin + `<Blobs><Blob/></Blobs><NextMarker/></EnumerationResults>`,
		"not a page": `{}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		t.Cleanup(server.Close)
		names, next, err := storeAt(t, server.URL).List(t.Context(), "spill", "", "")
		if !errors.Is(err, blobs.ErrOutcomeUnknown) || names != nil || next != "" {
			t.Errorf("%s: %q, next %q, %v, want %v", name, names, next, err, blobs.ErrOutcomeUnknown)
		}
	}
}

// storeAt returns a store whose service is a test server.
func storeAt(t *testing.T, address string) *azure.Blobs {
	t.Helper()
	a, err := azure.FromConnectionString(fmt.Sprintf("AccountName=devstoreaccount1;AccountKey=a2V5;TableEndpoint=%[1]s/t;QueueEndpoint=%[1]s/q;BlobEndpoint=%[1]s/b", address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdleConnections)
	return testenv.Must(azure.NewBlobs(a))(t)
}
