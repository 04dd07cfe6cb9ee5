package outbox

import (
	"io"
	"log"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, " ": 0, "0": 0, "1": time.Second, " 120 ": 2 * time.Minute, "0059": 59 * time.Second,
		"3600": time.Hour, "3601": time.Hour, "9223372036854775807": time.Hour, strings.Repeat("9", 400): time.Hour,
		"-1": 0, "+1": 0, "1.5": 0, "1s": 0, "1e3": 0, "soon": 0,
		"Sat, 21 Nov 2026 10:00:30 GMT":    30 * time.Second,
		"Saturday, 21-Nov-26 10:00:30 GMT": 30 * time.Second,
		"Sat Nov 21 10:00:30 2026":         30 * time.Second,
		"Sat, 21 Nov 2026 09:59:59 GMT":    0,
		"Fri, 31 Dec 9999 23:59:59 GMT":    time.Hour,
		"Mon, 01 Jan 0001 00:00:00 GMT":    0,
		"2026-11-21T10:00:30Z":             0,
	} {
		if got := parseRetryAfter(value, now, time.Hour); got != want {
			t.Errorf("%.64q is %v, want %v", value, got, want)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, seed := range []string{"", "1", "99999999999999999999", now.Add(time.Minute).Format(http.TimeFormat), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(seed, int64(time.Hour))
	}
	f.Fuzz(func(t *testing.T, value string, longest int64) {
		// Valid options are not negative.
		bound := time.Duration(longest & math.MaxInt64)
		if got := parseRetryAfter(value, now, bound); got < 0 || got > bound {
			t.Fatalf("%q is %v, with %v at most", value, got, bound)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\r\nb\xff\u202e", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(limit, 0) % 1000
		got := printable(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
