// Package blobstest tests the promises of a blobs.Store and the limits of the service: one suite for every
// implementation.
package blobstest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
)

// Run runs the suite. open returns a store; it may be the same one each time, since every test makes its own container.
func Run(t *testing.T, open func(t *testing.T) blobs.Store) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, env)
	}{
		{"CreateContainer", testCreateContainer},
		{"MissingContainer", testMissingContainer},
		{"PutGetDelete", testPutGetDelete},
		{"PutIf", testPutIf},
		{"Sizes", testSizes},
		{"Names", testNames},
		{"NameSweep", testNameSweep},
		{"Copies", testCopies},
		{"Cancelled", testCancelled},
		{"WholePuts", testWholePuts},
		{"List", testList},
		{"ListPrefixes", testListPrefixes},
		{"ListPages", testListPages},
		{"ListOld", testListOld},
		{"DeleteVersion", testDeleteVersion},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := env{store: open(t), container: "c-" + strings.ToLower(rand.Text())}
			if err := e.store.CreateContainer(t.Context(), e.container); err != nil {
				t.Fatal(err)
			}
			test.run(t, e)
		})
	}
}

// env is a store with a container of this test.
type env struct {
	store     blobs.Store
	container string
}

func (e env) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := e.store.Put(t.Context(), e.container, name, data); err != nil {
		t.Fatal(err)
	}
}

func (e env) get(t *testing.T, name string) []byte {
	t.Helper()
	data, err := e.store.Get(t.Context(), e.container, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func testCreateContainer(t *testing.T, e env) {
	if err := e.store.CreateContainer(t.Context(), e.container); err != nil {
		t.Errorf("create a container that exists: %v", err)
	}
	for _, name := range []string{"", "ab", "Upper", "under_line", "-a-b", "a-b-", "a--b", "a/b", strings.Repeat("a", 64)} {
		wantError(t, "create "+name, e.store.CreateContainer(t.Context(), name), blobs.ErrInvalid)
	}
}

func testMissingContainer(t *testing.T, e env) {
	const missing = "missing-container"
	_, err := e.store.Get(t.Context(), missing, "b")
	wantError(t, "get", err, blobs.ErrNotFound)
	wantError(t, "put", e.store.Put(t.Context(), missing, "b", []byte("x")), blobs.ErrNotFound)
	_, _, err = e.store.List(t.Context(), missing, "", "")
	wantError(t, "list", err, blobs.ErrNotFound)
	if err := e.store.Delete(t.Context(), missing, "b"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func testPutGetDelete(t *testing.T, e env) {
	_, err := e.store.Get(t.Context(), e.container, "b")
	wantError(t, "get a missing blob", err, blobs.ErrNotFound)
	e.put(t, "b", []byte("a longer first version"))
	e.put(t, "b", []byte("second"))
	if got := e.get(t, "b"); string(got) != "second" {
		t.Errorf("got %q, want the second version", got)
	}
	for range 2 {
		if err := e.store.Delete(t.Context(), e.container, "b"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	_, err = e.store.Get(t.Context(), e.container, "b")
	wantError(t, "get a deleted blob", err, blobs.ErrNotFound)
}

func testSizes(t *testing.T, e env) {
	for _, size := range []int{0, 1, 64 << 10, 1 << 20, 5<<20 + 1} {
		data := make([]byte, size)
		_, _ = rand.Read(data) // never fails
		e.put(t, "b", data)
		if got := e.get(t, "b"); !bytes.Equal(got, data) {
			t.Errorf("%d bytes came back as %d or changed", size, len(got))
		}
	}
	largest := make([]byte, blobs.MaxSize+1)
	wantError(t, "one byte more than the largest", e.store.Put(t.Context(), e.container, "large", largest), blobs.ErrTooLarge)
	_, err := e.store.Get(t.Context(), e.container, "large")
	wantError(t, "after it was refused", err, blobs.ErrNotFound)
	for _, size := range []int{blobs.MaxSize - 1, blobs.MaxSize} {
		largest = largest[:size]
		largest[len(largest)-1] = 1
		e.put(t, "large", largest)
		if got := e.get(t, "large"); !bytes.Equal(got, largest) {
			t.Errorf("the blob of %d bytes came back with %d bytes or changed", size, len(got))
		}
	}
}

func testNames(t *testing.T, e env) {
	names := []string{
		"a", "a/b/c", "a b", "a+b", "a%2Fb", "100%", "O'Brien", "a?b#c", "日本/𝄞", `a"b<c>d&e`, "a.b", ".a", "a=b;c,d", "~", "*", "é",
		strings.Repeat("n", 1024), strings.Repeat("s/", 253) + "s",
	}
	for _, name := range names {
		e.put(t, name, []byte(name))
	}
	for _, name := range names {
		if got := e.get(t, name); string(got) != name {
			t.Errorf("blob %q holds %q", name, got)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", "a/../b", "..", "./a", "a.", "a./b", `a\b`, "a\x00", "a\n", "a\u0085", "a\xff", "a\uffff"} {
		wantError(t, "put "+name, e.store.Put(t.Context(), e.container, name, []byte("x")), blobs.ErrInvalid)
		_, err := e.store.Get(t.Context(), e.container, name)
		wantError(t, "get "+name, err, blobs.ErrInvalid)
		wantError(t, "delete "+name, e.store.Delete(t.Context(), e.container, name), blobs.ErrInvalid)
	}
	for _, name := range []string{strings.Repeat("n", 1025), strings.Repeat("s/", 254) + "s"} {
		wantError(t, "put a long name", e.store.Put(t.Context(), e.container, name, []byte("x")), blobs.ErrTooLarge)
	}
}

func testCopies(t *testing.T, e env) {
	data := []byte("data")
	e.put(t, "b", data)
	data[0] = 'X'
	e.get(t, "b")[0] = 'Y'
	if got := e.get(t, "b"); string(got) != "data" {
		t.Errorf("got %q after the caller changed its copies", got)
	}
}

func testCancelled(t *testing.T, e env) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := e.store.Get(ctx, e.container, "b")
	_, _, listErr := e.store.List(ctx, e.container, "", "")
	_, _, oldErr := e.store.ListOld(ctx, e.container, "", time.Now(), "")
	for name, err := range map[string]error{
		"create": e.store.CreateContainer(ctx, e.container),
		"get":    getErr,
		"list":   listErr,
		"old":    oldErr,
		"unless": e.store.DeleteVersion(ctx, e.container, blobs.Version{Name: "b"}),
		"put":    e.store.Put(ctx, e.container, "b", []byte("x")),
		"delete": e.store.Delete(ctx, e.container, "b"),
	} {
		wantError(t, name, err, context.Canceled)
	}
}

// Readers concurrent with writers read one whole version.
func testWholePuts(t *testing.T, e env) {
	const size = 100_000
	e.put(t, "b", bytes.Repeat([]byte{'0'}, size))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 5 {
				data := bytes.Repeat([]byte{byte('a' + i*5 + n)}, size)
				if err := e.store.Put(t.Context(), e.container, "b", data); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				got, err := e.store.Get(t.Context(), e.container, "b")
				if err != nil || len(got) != size || bytes.Count(got, got[:1]) != size {
					t.Errorf("read %d bytes of more than one version, or %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}
