package blobstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
)

// names returns the names of all pages of a list.
func (e env) names(t *testing.T, prefix string) []string {
	t.Helper()
	var names []string
	for name, err := range blobs.All(t.Context(), e.store, e.container, prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func testList(t *testing.T, e env) {
	if got := e.names(t, ""); got != nil {
		t.Errorf("an empty container: %q", got)
	}
	const arm = "tls-=2Fsubscriptions=2Fs1"
	for _, name := range []string{
		"a0", "a/b/c", "a", "a/b", "a-b", "A", "ab", "a.b", "b",
		arm + "2/hash", arm + "/hash", arm + "=2Fapps=2F100=25/hash", "tls-/subscriptions/s1/hash",
		"hmac-O=27Brien a+b/h", "hmac-O'Brien a+b/h", "100%/h", "100%25/h", `q?a=b&c#d"<e>;f,[g]`, "(.*)$", "日本/é", "日本/𝄞",
		"gone/1", "gone/2",
	} {
		e.put(t, name, []byte(name))
	}
	e.put(t, "a/b", []byte("once more, and still listed once"))
	for _, name := range []string{"gone/1", "gone/2"} {
		if err := e.store.Delete(t.Context(), e.container, name); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		prefix string
		want   []string
	}{
		{"", []string{
			"(.*)$", "100%/h", "100%25/h", "A", "a", "a-b", "a.b", "a/b", "a/b/c", "a0", "ab", "b", "hmac-O'Brien a+b/h", "hmac-O=27Brien a+b/h",
			`q?a=b&c#d"<e>;f,[g]`, "tls-/subscriptions/s1/hash", arm + "/hash", arm + "2/hash", arm + "=2Fapps=2F100=25/hash", "日本/é", "日本/𝄞",
		}},
		{"a", []string{"a", "a-b", "a.b", "a/b", "a/b/c", "a0", "ab"}},
		{"a/", []string{"a/b", "a/b/c"}},
		{"a/b", []string{"a/b", "a/b/c"}},
		{"a/b/", []string{"a/b/c"}},
		{"a/b/c", []string{"a/b/c"}},
		{"a/b/c/", nil},
		{"a.", []string{"a.b"}},
		{"A", []string{"A"}},
		{arm, []string{arm + "/hash", arm + "2/hash", arm + "=2Fapps=2F100=25/hash"}},
		{arm + "/", []string{arm + "/hash"}},
		{arm + "=2F", []string{arm + "=2Fapps=2F100=25/hash"}},
		{"tls-/", []string{"tls-/subscriptions/s1/hash"}},
		{"tls-%2F", nil},
		{"hmac-O=27Brien a+", []string{"hmac-O=27Brien a+b/h"}},
		{"hmac-O'Brien a+", []string{"hmac-O'Brien a+b/h"}},
		{"hmac-O'Brien a ", nil},
		{"100%", []string{"100%/h", "100%25/h"}},
		{"100%25", []string{"100%25/h"}},
		{`q?a=b&c#d"<e>;f,[`, []string{`q?a=b&c#d"<e>;f,[g]`}},
		{"(.*", []string{"(.*)$"}},
		{".", nil},
		{"^a", nil},
		{"日", []string{"日本/é", "日本/𝄞"}},
		{"日本/𝄞", []string{"日本/𝄞"}},
		{"gone/", nil},
		{strings.Repeat("n", 1024), nil},
		{strings.Repeat("s/", 253), nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, e.names(t, test.prefix)); diff != "" {
			t.Errorf("%.64q (-want +got):\n%s", test.prefix, diff)
		}
	}
}

// Prefixes with which no name begins are refused, and so are continuations that no store has returned.
func testListPrefixes(t *testing.T, e env) {
	list := func(container, prefix, continuation string) error {
		_, _, err := e.store.List(t.Context(), container, prefix, continuation)
		return err
	}
	for _, prefix := range []string{"/", "/a", "a//", "a//b", "./", "../a", "a./", "a./b", `a\`, "a\x00", "a\n", "a\u0085", "\xe6\x97", "a\uffff"} {
		wantError(t, fmt.Sprintf("list %q", prefix), list(e.container, prefix, ""), blobs.ErrInvalid)
	}
	for _, prefix := range []string{strings.Repeat("n", 1025), strings.Repeat("s/", 254)} {
		wantError(t, "list a long prefix", list(e.container, prefix, ""), blobs.ErrTooLarge)
	}
	wantError(t, "list a container of another name", list("Upper", "", ""), blobs.ErrInvalid)
	for _, continuation := range []string{"x", "b", "{}", "e30", "bnVsbA", "?", strings.Repeat("a", 64<<10)} {
		wantError(t, fmt.Sprintf("continuation %.16q", continuation), list(e.container, "", continuation), blobs.ErrInvalid)
	}
}

func testListPages(t *testing.T, e env) {
	const count = 1003
	want := make([]string, count)
	for i := range want {
		want[i] = fmt.Sprintf("p/%04d", i)
	}
	e.putAll(t, append([]string{"o", "p", "p0"}, want...))

	var got []string
	first, next, err := e.store.List(t.Context(), e.container, "p/", "")
	if err != nil || len(first) > 1000 || next == "" {
		t.Fatalf("the first page has %d names and next %q, %v", len(first), next, err)
	}
	_, _, err = e.store.List(t.Context(), e.container, "p", next)
	wantError(t, "a continuation of another prefix", err, blobs.ErrInvalid)
	_, _, err = e.store.List(t.Context(), "another-container", "p/", next)
	wantError(t, "a continuation of another container", err, blobs.ErrInvalid)

	got = append(got, first...)
	for next != "" {
		var names []string
		if names, next, err = e.store.List(t.Context(), e.container, "p/", next); err != nil {
			t.Fatal(err)
		}
		got = append(got, names...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	all := blobs.All(t.Context(), e.store, e.container, "p/")
	for range all {
		break // an early end must not disturb the iterator
	}
	got = nil
	for name, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if !slices.Equal(want, got) {
		t.Errorf("walked %d names of %d, or in another order", len(got), count)
	}
	for name, err := range blobs.All(t.Context(), e.store, "missing-container", "") {
		if name != "" || !errors.Is(err, blobs.ErrNotFound) {
			t.Errorf("walking a missing container: %q, %v", name, err)
		}
	}
}

// putAll writes empty blobs, several concurrently.
func (e env) putAll(t *testing.T, names []string) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range slices.Chunk(names, (len(names)+3)/4) {
		wg.Go(func() {
			for _, name := range part {
				if err := e.store.Put(t.Context(), e.container, name, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
