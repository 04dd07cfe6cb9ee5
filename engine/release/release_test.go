package release_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/release"
)

func TestOlder(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		a, b  release.Version
		older bool // a than b; b is then not older than a
	}{
		"semantic":                      {release.Version{Version: "2.9"}, release.Version{Version: "2.10"}, true},
		"semantic, released later":      {release.Version{Version: "2.9", Released: day(2)}, release.Version{Version: "2.10", Released: day(1)}, true},
		"before the release":            {release.Version{Version: "2.0.0-rc.1"}, release.Version{Version: "2.0.0"}, true},
		"other builds of a version":     {release.Version{Version: "2.0.0+a", Released: day(1)}, release.Version{Version: "2.0.0+b", Released: day(2)}, true},
		"no semantic ones, by time":     {release.Version{Version: "nightly-b", Released: day(1)}, release.Version{Version: "nightly-a", Released: day(2)}, true},
		"one semantic, by time":         {release.Version{Version: "2.0", Released: day(1)}, release.Version{Version: "nightly", Released: day(2)}, true},
		"no semantic ones, one no time": {release.Version{Version: "a", Released: day(1)}, release.Version{Version: "b"}, false},
		"no semantic ones":              {release.Version{Version: "a"}, release.Version{Version: "b"}, false},
		"the same":                      {release.Version{Version: "2.0"}, release.Version{Version: "2.0"}, false},
	} {
		if got := c.a.Older(c.b); got != c.older || c.b.Older(c.a) {
			t.Errorf("%s: %v, the other way round %v", name, got, c.b.Older(c.a))
		}
	}
}
