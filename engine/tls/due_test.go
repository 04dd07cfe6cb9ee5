package tls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/pebble"
)

const day = 24 * time.Hour

// The authority's window decides, and is read as often as the authority requests. A window that moves into the past,
// as after revocations elsewhere, renews immediately, and a moment before the next check is not missed.
func TestWindows(t *testing.T) {
	t.Parallel()
	start := time.Now()
	type look struct {
		at      time.Duration
		window  []time.Duration // set before this check
		silent  bool            // the authority does not answer
		asked   bool
		renewed bool
	}
	for _, c := range []struct {
		what  string
		looks []look
	}{
		{"asked when it wants to be", []look{{at: 0, asked: true}, {at: 5 * time.Hour}, {at: 7 * time.Hour, asked: true}, {at: 8 * time.Hour}}},
		{"revoked elsewhere", []look{{at: 0, asked: true}, {at: 7 * time.Hour, window: []time.Duration{-2 * day, -day}, asked: true, renewed: true}}},
		{"before the next look", []look{{at: 0, window: []time.Duration{40 * time.Hour, 41 * time.Hour}, asked: true}, {at: 18 * time.Hour, asked: true, renewed: true}}},
		{"silent afterwards", []look{{at: 0, window: []time.Duration{70 * day, 71 * day}, asked: true},
			{at: 65 * day, silent: true, asked: true}}},
		{"a window behind its end", []look{{at: 80 * day, window: []time.Duration{95 * day, 96 * day}, asked: true}, {at: 82 * day, asked: true, renewed: true}}},
		{"silent from the first", []look{{at: 61 * day, silent: true, asked: true, renewed: true}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pebble.Options{}, 0)
			first := w.renew(t, input("first"))
			pair, err := w.vault.KeyPair(first.Certificate.Name, "")
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range c.looks {
				w.now = func() time.Time { return start.Add(l.at) }
				if l.window != nil {
					w.ca.SuggestRenewal(t, pair.Certificate[0], start.Add(l.window[0]), start.Add(l.window[1]), "https://example.com/incident")
				}
				w.ca.Forgive()
				if l.silent {
					silence(t, w, nil)
				}
				before := w.ca.Count(pebble.RenewalInfo)
				out := w.renew(t, input(fmt.Sprint("look", i)))
				if asked := w.ca.Count(pebble.RenewalInfo) > before; asked != l.asked || out.Renewed != l.renewed {
					t.Errorf("look %d: asked %v, %+v", i, asked, out)
				}
				if l.renewed && !l.silent && (out.ExplanationURL != "https://example.com/incident" || !strings.Contains(out.Because, "the authority wants it")) {
					t.Errorf("look %d: %+v", i, out)
				}
			}
		})
	}
}

// A run reports the reason of its renewal, also after a lost answer.
func TestBecause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	at := time.Now()
	w.vault.Now = func() time.Time { at = at.Add(time.Second); return at }
	for job, want := range map[string]string{"first": "there was none"} {
		for range 2 {
			if out := w.renew(t, input(job)); out.Because != want {
				t.Errorf("%s: %q, want %q", job, out.Because, want)
			}
		}
	}
	for range 2 {
		if out := w.renew(t, input("wider", domain, "example.com")); out.Because != "it is not for all of the domains" {
			t.Errorf("wider: %q", out.Because)
		}
	}
}
