package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/queues"
)

// ofLength returns a JSON text of n bytes.
func ofLength(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }

// around calls f with the limit, with one less, and with one more.
func around(limit int, f func(n int, fits bool)) {
	for n := limit - 1; n <= limit+1; n++ {
		f(n, n <= limit)
	}
}

// A message at its limit decodes unchanged, and fits its queue with the longest header.
func TestSizesOfMessages(t *testing.T) {
	t.Parallel()
	line := header{MessageID: strings.Repeat("m", MaxIDLength), InsertedAt: noon().Add(123456789), Attempts: 1 << 30,
		Retry: &retryInfo{ID: strings.Repeat("r", 36), Parent: strings.Repeat("p", 3*MaxIDLength+1+len(timestampLayout)), Count: 1 << 30}}
	around(MaxMessage, func(n int, fits bool) {
		body := []byte(`{"input":` + string(ofLength(n-len(`{"input":}`))) + `}`)
		m, err := Definition{}.decodeMessage(body, "m1")
		if len(body) != n || (err == nil) != fits || fits && string(m.Input) != string(body[len(`{"input":`):n-1]) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if !fits && (!errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(MaxMessage))) {
			t.Errorf("%d bytes: %v does not say the limit", n, err)
		}
		wrapped, err := line.prepend(body)
		if err != nil || fits && len(wrapped) > queues.MaxBody {
			t.Errorf("%d bytes take %d, %v", n, len(wrapped), err)
		}
		if again, rest := splitHeader(Delivery{Body: wrapped}); string(rest) != string(body) || cmp.Diff(line, again) != "" {
			t.Errorf("%d bytes: the line is %s", n, cmp.Diff(line, again))
		}
	})
}

// An input beyond the limit of a message goes into a blob, from the first byte on.
func TestSizesOfPackedMessages(t *testing.T) {
	t.Parallel()
	claims, _ := newClaims(t)
	frame, err := claims.Pack(t.Context(), Message{CorrelationID: "c", Engine: "e", Input: ofLength(2)})
	if err != nil {
		t.Fatal(err)
	}
	around(MaxMessage, func(n int, fits bool) {
		input := ofLength(n - len(frame) + 2)
		body, err := claims.Pack(t.Context(), Message{CorrelationID: "c", Engine: "e", Input: input})
		if err != nil || len(body) > MaxMessage {
			t.Fatalf("%d: %d bytes, %v", n, len(body), err)
		}
		m, err := Definition{Name: "e"}.decodeMessage(body, "m")
		if err == nil {
			if (m.Blob == "") != fits {
				t.Errorf("%d bytes: blob %q", n, m.Blob)
			}
			m, err = claims.resolve(t.Context(), "e", m)
		}
		if err != nil || string(m.Input) != string(input) {
			t.Errorf("%d bytes: %d came back, %v", n, len(m.Input), err)
		}
	})
}

// Ids at their limits in bytes fit row keys, also with the longest escapes.
func TestSizesOfIDs(t *testing.T) {
	t.Parallel()
	_, history, letters := newTables(t)
	for _, unit := range []string{"i", "/"} {
		around(MaxIDLength, func(n int, fits bool) {
			id := strings.Repeat(unit, n)
			l := pendingLetter()
			l.MessageID, l.CorrelationID, l.Engine = id, id, id
			created, err := letters.Add(t.Context(), l)
			recorded := history.Record(t.Context(), Entry{Engine: id, CorrelationID: id, Status: StatusSucceeded, CreatedAtUtc: noon()})
			for _, err := range []error{err, recorded} {
				if (err == nil) != fits || !fits && (!errors.Is(err, ErrIDTooLong) || !strings.Contains(err.Error(), "at most 128")) {
					t.Errorf("%d of %s: %v", n, unit, err)
				}
			}
			if created != fits {
				t.Errorf("%d of %s: created %v", n, unit, created)
			}
			page, err := letters.List(t.Context(), DeadLetterFilter{Engines: []string{id}})
			if fits && (err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].CorrelationID != id) {
				t.Errorf("%d of %s: listed %+v, %v", n, unit, page, err)
			}
			if entries, err := history.Run(t.Context(), id, id); fits && (err != nil || len(entries) != 1) {
				t.Errorf("%d of %s: %d entries, %v", n, unit, len(entries), err)
			}
		})
		around(MaxInstanceIDLength, func(n int, fits bool) {
			id := strings.Repeat(unit, n)
			l := pendingLetter()
			l.MessageID, l.InstanceID = fmt.Sprint("m", n, unit), id
			_, err := letters.Add(t.Context(), l)
			e := Entry{Engine: "e", CorrelationID: fmt.Sprint("c", n, unit), InstanceID: id, Operation: id, Status: StatusSucceeded, CreatedAtUtc: noon()}
			if recorded := history.Record(t.Context(), e); (err == nil) != fits || (recorded == nil) != fits || !fits && !strings.Contains(err.Error(), "at most 512") {
				t.Errorf("instance of %d: %v, %v", n, err, recorded)
			}
			entries, err := history.Run(t.Context(), "e", e.CorrelationID)
			if err != nil || (len(entries) == 1) != fits || fits && entries[0].InstanceID != id {
				t.Errorf("instance of %d: %d entries, %v", n, len(entries), err)
			}
		})
	}
}

// Texts of rows are cut, or replaced by their size, above their limits, and unchanged up to the limits; all texts at
// their maximum fit a row, with any characters.
func TestSizesOfTexts(t *testing.T) {
	t.Parallel()
	_, history, letters := newTables(t)
	around(maxDocument, func(n int, fits bool) {
		e := Entry{Engine: "e", CorrelationID: fmt.Sprint(n), Status: StatusFailed, CreatedAtUtc: noon(), Input: bytes.ReplaceAll(ofLength(n), []byte("x"), []byte("<")),
			Output: ofLength(n), Error: strings.Repeat("<", maxErrorText)}
		if err := history.Record(t.Context(), e); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		entries, err := history.Run(t.Context(), "e", e.CorrelationID)
		want := []string{string(e.Input), string(e.Output)}
		if omitted := fmt.Sprintf(`{"omittedBytes":%d}`, n); !fits {
			want = []string{omitted, omitted}
		}
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d bytes: %d entries, %v", n, len(entries), err)
		}
		full, err := history.Get(t.Context(), "e", entries[0].RowKey)
		if err != nil || string(full.Input) != want[0] || string(full.Output) != want[1] || full.Error != e.Error {
			t.Errorf("%d bytes: %d and %d came back, %v", n, len(full.Input), len(full.Output), err)
		}
	})
	around(maxErrorText, func(n int, fits bool) {
		l := pendingLetter()
		l.MessageID, l.ErrorMessage, l.OriginalMessage = fmt.Sprint("error", n), strings.Repeat("語", n/3)+strings.Repeat("x", n%3), bytes.Repeat([]byte{0xff}, queues.MaxText)
		if _, err := letters.Add(t.Context(), l); err != nil {
			t.Fatalf("%d bytes of an error: %v", n, err)
		}
		got, err := letters.Get(t.Context(), l.Engine, l.Key())
		if err != nil || (got.ErrorMessage == l.ErrorMessage) != fits || len(got.ErrorMessage) > maxErrorText || !bytes.Equal(got.OriginalMessage, l.OriginalMessage) {
			t.Errorf("%d bytes of an error: %d came back, of the message %d, %v", n, len(got.ErrorMessage), len(got.OriginalMessage), err)
		}
	})
	around(MaxResolutionNotes, func(n int, fits bool) {
		l, notes := pendingLetter(), strings.Repeat("<", n)
		l.MessageID = fmt.Sprint("notes", n)
		addLetter(t, letters, l)
		_, err := letters.Decide(t.Context(), l.Engine, l.Key(), Decision{Status: StatusResolved, Notes: &notes, At: noon()})
		got, getErr := letters.Get(t.Context(), l.Engine, l.Key())
		if (err == nil) != fits || getErr != nil || (got.ResolutionNotes == notes) != fits || (got.Status == StatusResolved) != fits || !fits && !strings.Contains(err.Error(), "at most 4096") {
			t.Errorf("%d bytes of notes: %v, then %s with %d", n, err, got.Status, len(got.ResolutionNotes))
		}
	})
}

// A run with many entries is split into transactions.
func TestSizesOfRuns(t *testing.T) {
	t.Parallel()
	_, history, _ := newTables(t)
	around(maxOps/2, func(n int, fits bool) {
		if fits && !sample.Keep(t, n) {
			return // one more than a transaction holds is enough
		}
		var entries []Entry
		for i := range n {
			entries = append(entries, Entry{Engine: "e", CorrelationID: fmt.Sprint(n), Status: StatusSucceeded, CreatedAtUtc: noon().Add(time.Duration(i) * time.Millisecond), Input: ofLength(maxDocument)})
		}
		recordEntries(t, history, entries...)
		if got, err := history.Run(t.Context(), "e", fmt.Sprint(n)); err != nil || len(got) != n {
			t.Errorf("%d of %d entries, %v", len(got), n, err)
		}
	})
}
