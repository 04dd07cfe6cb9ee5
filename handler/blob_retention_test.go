package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// pages are the pages of a sweep that are left.
type pages struct {
	n    int
	fail error
	seen []string
}

func (p *pages) sweep(ctx context.Context, before time.Time, from string) (int, string, error) {
	p.seen = append(p.seen, fmt.Sprintf("%q of %v", from, time.Since(before)))
	if err := errors.Join(p.fail, ctx.Err()); err != nil {
		return 0, "", err
	}
	if p.n--; p.n == 0 {
		return 1, "", nil
	}
	return 1, fmt.Sprint(p.n), nil
}

// Page follows page, container follows container; what fails does not hold the others up, and what runs out of time goes
// on.
func TestBlobSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := &pages{n: 2}, &pages{n: 2}
		b := &blobSweeps{keep: 180 * day, now: time.Now, sweeps: []blobSweep{first.sweep, second.sweep}}
		run := func(ctx context.Context) (removed int, err error) {
			for more := true; more && err == nil; {
				var n int
				n, more, err = b.slice(ctx)
				removed += n
			}
			return removed, err
		}
		if n, err := run(t.Context()); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		testenv.Diff(t, []string{`"" of 4320h0m0s`, `"1" of 4320h0m0s`}, second.seen, "pages")
		first.fail = errors.New("no entry")
		second.n = 3
		if _, err := run(t.Context()); !errors.Is(err, first.fail) {
			t.Error(err)
		}
		if n, _, err := b.slice(t.Context()); n != 1 || err != nil {
			t.Errorf("the others are held up: %d, %v", n, err)
		}
		late, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := run(late); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n, err := run(t.Context()); n != 2 || err != nil || second.seen[len(second.seen)-2] != `"2" of 4320h0m0s` {
			t.Errorf("%d, %v, %q", n, err, second.seen)
		}
	})
}

// The function finds the containers of the program: what nobody refers to goes, what a dead letter needs stays.
func TestBlobRetentionRuns(t *testing.T) {
	t.Parallel()
	r := settings.NewReader(emulator.With(settings.Storage, storage.Account(t).ConnectionString()).Lookup)
	s, err := settings.Load(r)
	testenv.Check(t, err)
	s.BlobAge = -time.Hour // everything is old
	st, prepare, err := openPlatform(r, s, slog.New(slog.DiscardHandler))
	testenv.Check(t, err)
	a, err := workApp().assemble(s, st, prepare)
	testenv.Check(t, err)
	defer a.Close()
	testenv.Check(t, a.Preparation.Try(t.Context()))
	claims := engine.NewClaims(st.Blobs, "")
	input := json.RawMessage(`"` + strings.Repeat("x", engine.MaxMessage) + `"`)
	var bodies [][]byte
	for _, id := range []string{"blob-of-nobody", "blob-of-a-dead-letter"} {
		body, err := claims.Pack(t.Context(), engine.Message{Engine: "work", CorrelationID: id, Input: input})
		testenv.Check(t, err)
		bodies = append(bodies, body)
	}
	_, err = engine.NewDeadLetters(st.Tables, "").Add(t.Context(), engine.DeadLetter{Engine: "work", MessageID: "m1", CorrelationID: "blob-of-a-dead-letter",
		OriginalQueue: "work-queue", OriginalMessage: bodies[1], ErrorMessage: "it failed", LastFailureAtUtc: time.Now()})
	testenv.Check(t, err)
	testenv.Check(t, a.Timers[retentionTimer].Handle(t.Context(), trigger.TimerDelivery{}))
	for n, body := range bodies {
		var m engine.Message
		testenv.Check(t, json.Unmarshal(body, &m))
		if _, err := st.Blobs.Get(t.Context(), "engine-messages", m.Blob); errors.Is(err, blobs.ErrNotFound) != (n == 0) {
			t.Errorf("blob %s: %v", m.Blob, err)
		}
	}
}
