package localhost

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestPaths holds the paths of a handler as observed on the real host.
func TestPaths(t *testing.T) {
	for sent, want := range map[string]string{
		"/a%2Fb": "/a%252Fb", "/a%252Fb": "/a%252Fb", "/a%2fb": "/a%252fb",
		"/a%2E": "/a.", "/a%5Cb": "/a%5Cb", `/a\b`: "/a%5Cb", "/a+b": "/a+b", "/a%2Bb": "/a+b", "/a;b%3Bc": "/a;b;c",
		"/a%20b": "/a%20b", "/a%25b": "/a%25b", "/%41%7E": "/A~", "/%C3%BC": "/%C3%BC", "/a%22%3C": "/a%22%3C", "/[%5B": "/%5B%5B",
		"/a%3Ab%40c%2Cd": "/a:b@c,d", "/a|b%7C^": "/a%7Cb%7C%5E", "/a%3Fb%23": "/a%3Fb%23", "/'%27(%28": "/''((", "/%0A%7F": "/%0A%7F",
		"/a%ZZb": "/a%25ZZb", "/a%": "/a%25", "/a%2": "/a%252", "/a%FFb": "/a%25FFb", "/a%C3b": "/a%25C3b", "/%EF%BF%BD": "/%EF%BF%BD",
		"/a//b": "/a//b", "/a/./b": "/a/b", "/a/../b": "/b", "/a/%2e%2E/b": "/b", "/../../a": "/a", "/a/..": "/", "/a/.": "/a/", "/a/b/..": "/a/",
		"/": "/", "/a/...": "/a/...",
	} {
		path, ok := decodePath(sent)
		got := encodePath(path)
		if !ok || got != want {
			t.Errorf("%s arrives as %s, %v, want %s", sent, got, ok, want)
		}
		if u := (&url.URL{Path: path, RawPath: got}); u.EscapedPath() != got {
			t.Errorf("%s: the client of net/http would send %s", sent, u.EscapedPath())
		}
	}
	if path, ok := decodePath("/a%00b"); ok {
		t.Errorf("a null became %q", path)
	}
}

func TestQueries(t *testing.T) {
	for sent, want := range map[string]string{
		"q=%2F%252F": "q=%2F%252F", "q=%ZZ%": "q=%25ZZ%25", "q=+%20": "q=+%20", "q=a;b&&c=": "q=a;b&&c=", "q=%00": "q=%00", "": "",
		`q=[|"<>]`: "q=[%7C%22%3C%3E]",
	} {
		if got := encodeQuery(sent); got != want {
			t.Errorf("%s arrives as %s, want %s", sent, got, want)
		}
	}
}

// FuzzDecodePath checks that no path breaks the decoding, that no dot segment remains, and that the handler decodes its
// path to the same one.
func FuzzDecodePath(f *testing.F) {
	for _, seed := range []string{"/a%2Fb/../%2e", "/%", "/%C3%BC%FF%00", "//./", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		path, ok := decodePath("/" + raw)
		if !ok {
			return
		}
		for _, part := range strings.Split(path, "/") {
			if part == "." || part == ".." {
				t.Errorf("%q is left in %q", part, path)
			}
		}
		if again, err := url.PathUnescape(encodePath(path)); err != nil || again != path {
			t.Errorf("%q is %q after the way to the handler, %v", path, again, err)
		}
	})
}

func TestHeads(t *testing.T) {
	headers := func(count, size int) http.Header {
		h := http.Header{}
		for range count {
			h.Add("X-A", strings.Repeat("h", size))
		}
		return h
	}
	for name, test := range map[string]struct {
		target string
		host   string
		header http.Header
		want   int
	}{
		"fine":             {"/a", "h", headers(90, 10), 0},
		"long query":       {"/a?" + strings.Repeat("q", 9000), "h", nil, http.StatusRequestURITooLong},
		"query of 7 kB":    {"/a?" + strings.Repeat("q", 7000), "h", nil, 0},
		"many headers":     {"/a", "h", headers(110, 1), http.StatusRequestHeaderFieldsTooLarge},
		"large headers":    {"/a", "h", headers(1, 40000), http.StatusRequestHeaderFieldsTooLarge},
		"headers of 20 kB": {"/a", "h", headers(1, 20000), 0},
		"no host":          {"/a", "", nil, http.StatusInternalServerError},
		"raw UTF-8":        {"/ü", "h", nil, http.StatusBadRequest},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RequestURI, r.Host, r.Header = test.target, test.host, test.header
		if got := headStatus(r); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
