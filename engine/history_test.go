package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/tables"
)

func rotateEntry() Entry {
	return Entry{
		Engine:        "hmac",
		InstanceID:    "publisher",
		Operation:     "rotate",
		Status:        StatusSucceeded,
		DurationMs:    1234,
		Input:         json.RawMessage(`{"slot":7}`),
		Output:        json.RawMessage(`{"keyVersion":"v2"}`),
		CreatedAtUtc:  noon(),
		CorrelationID: "run/1",
		RunStatus:     StatusSucceeded,
	}
}

// The stored form is a contract with all existing rows: this test changes only to add columns.
func TestRecordStoresRowAndIndexRow(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	recordEntries(t, history, rotateEntry())
	want := []tables.Entity{
		{
			Key: tables.Key{Partition: "hmac", Row: "run=2F1-20261121T120000.123456Z"},
			Properties: map[string]any{
				"Engine": "hmac", "InstanceId": "publisher", "Operation": "rotate", "Status": "Succeeded",
				"DurationMs": int64(1234), "Input": `{"slot":7}`, "Output": `{"keyVersion":"v2"}`,
				"CreatedAtUtc": noon(), "CorrelationId": "run/1", "RunStatus": "Succeeded",
			},
		},
		{
			Key: tables.Key{Partition: "hmac", Row: "~S-251607038399876543-" + digest("run=2F1-20261121T120000.123456Z")},
			Properties: map[string]any{
				"Engine": "hmac", "InstanceId": "publisher", "Operation": "rotate", "Status": "Succeeded",
				"DurationMs": int64(1234), "CreatedAtUtc": noon(), "CorrelationId": "run/1",
				"TargetRowKey": "run=2F1-20261121T120000.123456Z", "ByInstance": true,
			},
		},
		{
			Key: tables.Key{Partition: "hmac", Row: "~i-" + digest("publisher") + "-S-251607038399876543-" + digest("run=2F1-20261121T120000.123456Z")},
			Properties: map[string]any{
				"Engine": "hmac", "InstanceId": "publisher", "Operation": "rotate", "Status": "Succeeded",
				"DurationMs": int64(1234), "CreatedAtUtc": noon(), "CorrelationId": "run/1",
				"TargetRowKey": "run=2F1-20261121T120000.123456Z",
			},
		},
	}
	if diff := cmp.Diff(want, allRows(t, store, DefaultHistoryTable, "hmac")); diff != "" {
		t.Errorf("stored rows (-want +got):\n%s", diff)
	}
}

func TestRecordAgainChangesNothing(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	entry := rotateEntry()
	recordEntries(t, history, entry)
	before := allRows(t, store, DefaultHistoryTable, "hmac")
	entry.CreatedAtUtc = entry.CreatedAtUtc.Add(999 * time.Nanosecond).In(time.FixedZone("east", 3600))
	recordEntries(t, history, entry)
	if diff := cmp.Diff(before, allRows(t, store, DefaultHistoryTable, "hmac")); diff != "" {
		t.Errorf("rows changed (-before +after):\n%s", diff)
	}
}

func TestRunAndGetReadBack(t *testing.T) {
	t.Parallel()
	_, history, _ := newTables(t)
	failed := rotateEntry()
	failed.Operation, failed.Status, failed.RunStatus = "notify", StatusFailed, StatusFailed
	failed.Output, failed.Error, failed.CreatedAtUtc = nil, "no route", noon().Add(time.Second)
	first := rotateEntry()
	first.RunStatus = ""
	recordEntries(t, history, failed, first)
	// An id that extends another one's escaped form is not of its run.
	other := rotateEntry()
	other.CorrelationID = first.CorrelationID + "-20261121T120000.123456Z"
	recordEntries(t, history, other)
	got, err := history.Run(t.Context(), "hmac", "run/1")
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{first, failed}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Entry{}, "RowKey", "ETag")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	for i, entry := range got {
		one, err := history.Get(t.Context(), "hmac", entry.RowKey)
		if err != nil {
			t.Fatal(err)
		}
		if one.ETag == "" {
			t.Error("no ETag")
		}
		if diff := cmp.Diff(want[i], one, cmpopts.IgnoreFields(Entry{}, "RowKey", "ETag")); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
	}
	if none, err := history.Run(t.Context(), "hmac", "run"); err != nil || len(none) != 0 {
		t.Errorf("run of another id: %v, %v", none, err)
	}
}

func TestGetFindsOnlyMainRows(t *testing.T) {
	t.Parallel()
	store, history, letters := newTables(t)
	recordEntries(t, history, rotateEntry())
	rows := allRows(t, store, DefaultHistoryTable, "hmac")
	for _, key := range []string{
		"", "x", "/", "a/b", "~", "\x00", "%2F", strings.Repeat("x", 2000), "run-20261121T120000.123456Z",
		"run/1-20261121T120000.123456Z", "run=2f1-20261121T120000.123456Z", rows[1].Row,
	} {
		if _, err := history.Get(t.Context(), "hmac", key); !errors.Is(err, ErrNotFound) {
			t.Errorf("history %q: %v, want ErrNotFound", key, err)
		}
		if _, err := letters.Get(t.Context(), "hmac", key); !errors.Is(err, ErrNotFound) {
			t.Errorf("dead letter %q: %v, want ErrNotFound", key, err)
		}
	}
	for _, engine := range []string{"", "tls", "hmac/", strings.Repeat("x", 200)} {
		if _, err := history.Get(t.Context(), engine, rows[0].Row); !errors.Is(err, ErrNotFound) {
			t.Errorf("engine %q: %v, want ErrNotFound", engine, err)
		}
	}
}

func TestRecordRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(e *Entry)
		tooLong bool
	}{
		"no engine":             {change: func(e *Entry) { e.Engine = "" }},
		"no correlation id":     {change: func(e *Entry) { e.CorrelationID = "" }},
		"no status":             {change: func(e *Entry) { e.Status = "" }},
		"unknown status":        {change: func(e *Entry) { e.Status = "succeeded" }},
		"unknown run status":    {change: func(e *Entry) { e.RunStatus = "Done" }},
		"no time":               {change: func(e *Entry) { e.CreatedAtUtc = time.Time{} }},
		"time without key":      {change: func(e *Entry) { e.CreatedAtUtc = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"long engine":           {change: func(e *Entry) { e.Engine = strings.Repeat("x", 129) }, tooLong: true},
		"long correlation id":   {change: func(e *Entry) { e.CorrelationID = strings.Repeat("x", 129) }, tooLong: true},
		"long instance id":      {change: func(e *Entry) { e.InstanceID = strings.Repeat("x", 513) }, tooLong: true},
		"long operation":        {change: func(e *Entry) { e.Operation = strings.Repeat("x", 513) }, tooLong: true},
		"two runs":              {change: func(e *Entry) { e.CorrelationID = "other" }},
		"two engines":           {change: func(e *Entry) { e.Engine = "tls" }},
		"two ends of a run":     {change: func(e *Entry) { e.CreatedAtUtc = noon().Add(time.Second) }},
		"two entries of a time": {change: func(e *Entry) { e.RunStatus, e.CreatedAtUtc = "", noon().Add(time.Nanosecond) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, history, _ := newTables(t)
			entry := rotateEntry()
			test.change(&entry)
			err := history.Record(t.Context(), rotateEntry(), entry)
			if err == nil || errors.Is(err, ErrIDTooLong) != test.tooLong {
				t.Errorf("error %v, want ErrIDTooLong: %v", err, test.tooLong)
			}
			if len(store.applied) != 0 {
				t.Error("something was written")
			}
		})
	}
}

// Ids of the greatest length fit every key, with any characters, and are found again.
func TestLongestIDs(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"escaped": "/", "index-like": "~", "invalid": "\xff", "nul": "\x00", "wide": "😀", "dashes": "-", "percent": "%"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, history, letters := newTables(t)
			id := strings.Repeat(unit, MaxIDLength/len(unit))
			entry := rotateEntry()
			entry.Engine, entry.CorrelationID = id, id
			recordEntries(t, history, entry)
			run, err := history.Run(t.Context(), id, id)
			if err != nil || len(run) != 1 {
				t.Fatalf("run: %d entries, %v", len(run), err)
			}
			if _, err := history.Get(t.Context(), id, run[0].RowKey); err != nil {
				t.Error(err)
			}
			page, err := history.List(t.Context(), HistoryFilter{Engines: []string{id}})
			if err != nil || len(page.Entries) != 1 || page.Entries[0].RowKey != run[0].RowKey {
				t.Errorf("list: %+v, %v", page, err)
			}
			letter := pendingLetter()
			letter.Engine, letter.CorrelationID, letter.MessageID = id, id, id
			addLetter(t, letters, letter)
			pending, err := letters.Pending(t.Context(), id, id)
			if err != nil || len(pending) != 1 {
				t.Fatalf("pending: %d, %v", len(pending), err)
			}
			if _, err := letters.Get(t.Context(), id, pending[0].RowKey); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRecordManyEndsWithTheRunStatus(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	var entries []Entry
	for i := range 120 {
		entry := rotateEntry()
		entry.CreatedAtUtc = noon().Add(time.Duration(i) * time.Microsecond)
		if i > 0 {
			entry.RunStatus = ""
		}
		entries = append(entries, entry)
	}
	crash := errors.New("crash")
	store.refuse = func([]tables.Op) error {
		if len(store.applied) == 2 {
			return crash
		}
		return nil
	}
	if err := history.Record(t.Context(), entries...); !errors.Is(err, crash) {
		t.Fatalf("error %v, want the crash", err)
	}
	finished := func() (n, ends int) {
		run, err := history.Run(t.Context(), "hmac", "run/1")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range run {
			if entry.RunStatus != "" {
				ends++
			}
		}
		return len(run), ends
	}
	if n, ends := finished(); n != 66 || ends != 0 {
		t.Errorf("after the crash: %d entries, %d run statuses, want 66 and 0", n, ends)
	}
	store.refuse = nil
	recordEntries(t, history, entries...)
	if n, ends := finished(); n != 120 || ends != 1 {
		t.Errorf("after the repetition: %d entries, %d run statuses, want 120 and 1", n, ends)
	}
}

func TestRecordTakesDocumentsOfAnyKind(t *testing.T) {
	t.Parallel()
	long := func(n int, unit string) json.RawMessage {
		return json.RawMessage(`"` + strings.Repeat(unit, n/len(unit)) + `"`)
	}
	tests := map[string]struct{ in, want json.RawMessage }{
		"none":          {nil, nil},
		"null":          {json.RawMessage(`null`), json.RawMessage(`null`)},
		"several parts": {long(100_000, "x"), long(100_000, "x")},
		"wide parts":    {long(100_000, "😀"), long(100_000, "😀")},
		"html":          {long(190_000, "<"), long(190_000, "<")},
		"too long":      {long(200_000, "x"), json.RawMessage(`{"omittedBytes":200002}`)},
		"not JSON":      {json.RawMessage(`{"a":`), json.RawMessage(`"{\"a\":"`)},
		"not UTF-8":     {json.RawMessage("\"\xff\""), json.RawMessage("\"\uFFFD\"")},
		"secret":        {json.RawMessage(`{"secretText":"abc", "n":1.0}`), json.RawMessage(`{"secretText":"[redacted]", "n":1.0}`)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, history, _ := newTables(t)
			var entries []Entry
			for i := range 3 {
				entry := rotateEntry()
				entry.Input, entry.Output, entry.RunStatus = test.in, test.in, ""
				entry.Error = strings.Repeat("\xff\x00AccountKey=abc; ", 2_000)
				entry.CreatedAtUtc = noon().Add(time.Duration(i) * time.Second)
				entries = append(entries, entry)
			}
			recordEntries(t, history, entries...)
			run, err := history.Run(t.Context(), "hmac", "run/1")
			if err != nil || len(run) != len(entries) {
				t.Fatalf("%d entries, %v", len(run), err)
			}
			for _, entry := range run {
				if string(entry.Input) != string(test.want) || string(entry.Output) != string(test.want) {
					t.Errorf("input %.80q, output %.80q, want %.80q", entry.Input, entry.Output, test.want)
				}
				if len(entry.Error) > maxErrorText || strings.Contains(entry.Error, "abc") {
					t.Errorf("error text: %d bytes, %.80q", len(entry.Error), entry.Error)
				}
			}
		})
	}
}

func TestRecordNothing(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	if err := history.Record(t.Context()); err != nil || len(store.applied) != 0 {
		t.Errorf("%v, %d writes", err, len(store.applied))
	}
}

func TestErrorsNameTheTable(t *testing.T) {
	t.Parallel()
	history := NewHistory(tables.NewMemory(), "")
	for name, err := range map[string]error{
		"record": history.Record(t.Context(), rotateEntry()),
		"run":    errorOf(history.Run(t.Context(), "hmac", "x")),
		"list":   errorOf(history.List(t.Context(), HistoryFilter{Engines: []string{"hmac"}})),
	} {
		if !errors.Is(err, tables.ErrNotFound) || errors.Is(err, ErrNotFound) || !strings.Contains(fmt.Sprint(err), "istory") {
			t.Errorf("%s without a table: %v", name, err)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }
