package urlpath

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// proxied returns a path as the proxy of the Functions host forwards it: decoded except for slashes, dot segments
// resolved, and encoded again.
func proxied(t interface{ Fatal(...any) }, path string) string {
	var out []string
	for segment := range strings.SplitSeq(path, "/") {
		text := strings.NewReplacer("%2F", "\x00", "%2f", "\x01").Replace(segment)
		text, err := url.PathUnescape(text)
		if err != nil {
			t.Fatal(err)
		}
		switch text {
		case ".":
			continue
		case "..":
			out = out[:max(1, len(out)-1)]
			continue
		}
		text = strings.NewReplacer("\x00", "%2F", "\x01", "%2f").Replace(text)
		out = append(out, url.PathEscape(text))
	}
	return strings.Join(out, "/")
}

func direct(_ interface{ Fatal(...any) }, path string) string { return path }

// received returns a server's reading of the segments of a path.
func received(t interface{ Fatal(...any) }, path string) []string {
	u, err := url.Parse("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	Restore(u)
	segments := strings.Split(u.EscapedPath(), "/")
	for n := range segments {
		if segments[n], err = url.PathUnescape(segments[n]); err != nil {
			t.Fatal(err)
		}
	}
	return segments
}

// Any id arrives, with the proxy and without.
func TestIDsArrive(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"%", "2", "5", "25", "2F", "%2f", "%2E", "%252F", "/", ".", "..", "a", "F", "+", " ", "é", ";", "?", "#", "\\"})
	rapid.Check(t, func(t *rapid.T) {
		id := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "id"), "")
		want := []string{"", "api", "orchestrations", id, "raise"}
		path := "/api/orchestrations/" + Escape(id) + "/raise"
		for _, way := range []func(interface{ Fatal(...any) }, string) string{direct, proxied} {
			if got := received(t, way(t, path)); !slices.Equal(got, want) {
				t.Fatalf("%q as %s: %q", id, path, got)
			}
		}
	})
}

// Clients without the inner encoding reach every id except those that contain its letters.
func TestIDsOfOtherClientsArrive(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"a/b": "a/b", "a/b%": "a/b%", "%25": "%25", "a+b c": "a+b c", "100%2": "100%2", "%2": "%2", "a.b": "a.b",
		"a%2Fb": "a/b", "a%252Fb": "a%2Fb", // the proxy leaves no way to distinguish them
	} {
		for _, way := range []func(interface{ Fatal(...any) }, string) string{direct, proxied} {
			if got := received(t, way(t, "/api/tasks/"+url.PathEscape(id))); got[len(got)-1] != want {
				t.Errorf("%q arrives as %q", id, got)
			}
		}
	}
}

// Restoring is for incoming paths, and does not change an ordinary path.
func TestOrdinaryPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/api/health/live", "/api/history//", "/api/a%20b", "/api/a%2Fb", "/api/%C3%A9", "/api/a%25"} {
		u, err := url.Parse("http://localhost" + path)
		if err != nil {
			t.Fatal(err)
		}
		Restore(u)
		if u.EscapedPath() != path {
			t.Errorf("%s becomes %s", path, u.EscapedPath())
		}
	}
}
