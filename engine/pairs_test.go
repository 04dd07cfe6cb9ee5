package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// sameJSON reports whether two documents are equal except for the encoding of their texts.
func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	plain := func(text json.RawMessage) string {
		var v any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	return len(a) == 0 && len(b) == 0 || plain(a) == plain(b)
}

// An engine reads a message that Pack accepts unchanged: with its input, inline or in a blob, and through the header
// of a requeue.
func FuzzMessages(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		want := Message{CorrelationID: s.Text(MaxIDLength + 1), Engine: s.Name(MaxIDLength), Operation: s.Text(MaxInstanceIDLength), InstanceID: s.Name(MaxInstanceIDLength),
			TenantID: s.Text(MaxInstanceIDLength), Input: s.JSON()}
		if s.Int(3) == 0 {
			want.Input, _ = json.Marshal(s.Text(MaxMessage))
		}
		claims := NewClaims(blobs.NewMemory(), "")
		if err := claims.createContainer(context.Background()); err != nil {
			t.Fatal(err)
		}
		body, err := claims.Pack(context.Background(), want)
		if err != nil {
			if checkID("", want.CorrelationID) == nil && checkTenant(want.TenantID) == nil {
				t.Errorf("not packed: %v", err)
			}
			return
		}
		j := header{MessageID: s.Name(MaxIDLength), InsertedAt: s.Time(), Attempts: s.Int(1 << 20)}
		if s.Bool() {
			j.Retry = &retryInfo{ID: s.Text(36), Parent: s.Text(432), Count: s.Int(1 << 20)}
		}
		line, err := j.prepend(body)
		if err != nil {
			t.Fatal(err)
		}
		again, rest := splitHeader(Delivery{ID: "other", Body: line})
		if diff := cmp.Diff(j, again); diff != "" || string(rest) != string(body) {
			t.Fatalf("the line is another: %s", diff)
		}
		got, err := Definition{Name: want.Engine}.decodeMessage(rest, "m1")
		if err == nil {
			got, err = claims.resolve(context.Background(), want.Engine, got)
		}
		if err != nil {
			t.Fatalf("it is packed and cannot be read: %v", err)
		}
		if !sameJSON(t, want.Input, got.Input) {
			t.Errorf("the input %q becomes %q", want.Input, got.Input)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Message{}, "Input")); diff != "" {
			t.Error(diff)
		}
		if _, err := got.encode(); err != nil {
			t.Errorf("a run cannot keep it: %v", err)
		}
	})
}

// A dead letter that Add accepts is read back unchanged, from its row, and from the rows of its lists with their
// fields.
func FuzzDeadLetterRows(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		d := DeadLetter{Engine: s.Name(MaxIDLength), MessageID: s.Name(MaxIDLength), InsertedAtUtc: s.Time(), InstanceID: s.Text(MaxInstanceIDLength), OriginalQueue: s.Text(63),
			OriginalMessage: s.Bytes(64), ErrorMessage: s.Text(maxErrorText + 2), DetectedReason: ReasonPoison, DequeueCount: int(int32(s.Int64())), FirstFailureAtUtc: s.Time(),
			LastFailureAtUtc: s.Time(), CorrelationID: s.Name(MaxIDLength), ParentRowKey: s.Text(MaxInstanceIDLength), Node: s.Text(100)}
		if s.Bool() {
			d.OriginalMessage = []byte(s.Text(queues.MaxText))
		}
		if d.ParentRowKey != "" {
			d.RetryCount = s.Int(math.MaxInt16)
		}
		letters := NewDeadLetters(tables.NewMemory(), "")
		if err := letters.CreateTable(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := letters.Add(context.Background(), d); err != nil {
			t.Fatalf("not taken: %v", err)
		}
		if err := d.prepare(); err != nil {
			t.Fatal(err)
		}
		got, err := letters.Get(context.Background(), d.Engine, d.Key())
		if err != nil {
			t.Fatal(err)
		}
		listed, err := letters.Pending(context.Background(), d.Engine, d.CorrelationID)
		for _, text := range []*string{&d.Engine, &d.MessageID, &d.InstanceID, &d.OriginalQueue, &d.CorrelationID, &d.Node} {
			*text = cleanText(*text) // a NUL in an id is replaced in columns; the key keeps it
		}
		ignore := cmpopts.IgnoreFields(DeadLetter{}, "RowKey", "ETag", "Status")
		if diff := cmp.Diff(d, got, ignore, cmp.Comparer(bytes.Equal), cmp.Transformer("unset", unset)); diff != "" {
			t.Error(diff)
		}
		if err != nil || len(listed) != 1 || listed[0].RowKey != got.RowKey || listed[0].ErrorMessage != clip(d.ErrorMessage, maxListText) {
			t.Errorf("listed as %+v, %v", listed, err)
		}
	})
}

// unset returns the time of a row without one.
func unset(at time.Time) time.Time {
	if at.Unix() == 0 {
		return time.Time{}
	}
	return at
}

// An entry of the history is read back unchanged, and found by its run.
func FuzzHistoryRows(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		e := Entry{Engine: s.Name(MaxIDLength), CorrelationID: s.Name(MaxIDLength), InstanceID: s.Text(MaxInstanceIDLength), Operation: s.Text(MaxInstanceIDLength),
			Status: StatusFailed, DurationMs: s.Int64(), Input: s.JSON(), Output: s.JSON(), Error: s.Text(maxErrorText + 2), CreatedAtUtc: s.Time()}
		if s.Bool() {
			e.RunStatus = StatusSucceeded
		}
		history := NewHistory(tables.NewMemory(), "")
		if err := history.CreateTable(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := history.Record(context.Background(), e); err != nil {
			t.Fatalf("not taken: %v", err)
		}
		found, err := history.Run(context.Background(), e.Engine, e.CorrelationID)
		if err != nil || len(found) != 1 {
			t.Fatalf("%d entries, %v", len(found), err)
		}
		got, err := history.Get(context.Background(), e.Engine, found[0].RowKey)
		if err != nil {
			t.Fatal(err)
		}
		e.prepare()
		for _, text := range []*string{&e.Engine, &e.CorrelationID, &e.InstanceID, &e.Operation} {
			*text = cleanText(*text)
		}
		if diff := cmp.Diff(e, got, cmpopts.IgnoreFields(Entry{}, "RowKey", "ETag"), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		for _, document := range []json.RawMessage{got.Input, got.Output} {
			if len(document) > 0 && (!json.Valid(document) || payload.Check(document) != nil) {
				t.Errorf("%q cannot be shown", document)
			}
		}
	})
}

// A token leads to its own place, in its own list only.
func FuzzPairOfTokens(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		at := position{place(s.Time(), s.Text(400)), s.Name(MaxIDLength)}
		print := fingerprint(s.Text(100), s.Time())
		token := encodeToken(print, at)
		got, err := decodeToken(token, print, []string{at.engine, "other"})
		if err != nil || *got != at {
			t.Errorf("%+v becomes %+v, %v", at, got, err)
		}
		if _, err := decodeToken(token, print+"x", []string{at.engine}); !errors.Is(err, ErrToken) {
			t.Errorf("another list takes it: %v", err)
		}
		if _, err := decodeToken(token, print, []string{at.engine + "x"}); !errors.Is(err, ErrToken) {
			t.Errorf("a list of another engine takes it: %v", err)
		}
	})
}
