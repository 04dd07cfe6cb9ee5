package blobstest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
)

func testPutIf(t *testing.T, e env) {
	putIf := func(name, data, etag string) (string, error) {
		var response blobs.Response
		err := e.store.PutIf(blobs.WithCaptureResponse(t.Context(), &response), e.container, name, []byte(data), etag)
		if response.Date().IsZero() {
			t.Errorf("put %s: the service did not tell its time", name)
		}
		return response.ETag(), err
	}
	first, err := putIf("b", "one", "")
	if err != nil || first == "" {
		t.Fatalf("first put: ETag %q, %v", first, err)
	}
	_, err = putIf("b", "two", "")
	wantError(t, "put what must not be there", err, blobs.ErrPrecondition)
	var read blobs.Response
	if _, err := e.store.Get(blobs.WithCaptureResponse(t.Context(), &read), e.container, "b"); err != nil || read.ETag() != first || read.Date().IsZero() {
		t.Errorf("get: ETag %q at %v, %v; want %q", read.ETag(), read.Date(), err, first)
	}
	second, err := putIf("b", "two", first)
	if err != nil || second == first {
		t.Fatalf("put over %q: ETag %q, %v", first, second, err)
	}
	_, err = putIf("b", "three", first)
	wantError(t, "put over an old version", err, blobs.ErrPrecondition)
	_, err = putIf("missing", "x", first)
	wantError(t, "put over a missing blob", err, blobs.ErrPrecondition)
	if got := e.get(t, "b"); string(got) != "two" {
		t.Errorf("the blob holds %q", got)
	}
	var none blobs.Response
	_, err = e.store.Get(blobs.WithCaptureResponse(t.Context(), &none), e.container, "missing")
	wantError(t, "get", err, blobs.ErrNotFound)
	if none.Date().IsZero() {
		t.Error("the service did not tell its time when there was no blob")
	}
	wantError(t, "put into no container", e.store.PutIf(t.Context(), "missing-container", "b", nil, ""), blobs.ErrNotFound)

	var won atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := e.store.PutIf(t.Context(), e.container, "b", []byte("mine"), second); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 8 replaced one version", won.Load())
	}
}
