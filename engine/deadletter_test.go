package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/tables"
)

func pendingLetter() DeadLetter {
	return DeadLetter{
		Engine:            "hmac",
		MessageID:         "msg#1",
		InsertedAtUtc:     noon().Add(-time.Hour).Truncate(time.Second),
		InstanceID:        "publisher",
		OriginalQueue:     "hmac-rotation-queue",
		OriginalMessage:   []byte(`{"secretText": "kept"}`),
		ErrorMessage:      "vault said no: password=abc",
		DetectedReason:    ReasonAttemptsExhausted,
		DequeueCount:      5,
		FirstFailureAtUtc: noon().Add(-time.Minute),
		LastFailureAtUtc:  noon(),
		CorrelationID:     "run/1",
	}
}

// The stored form is a contract with all existing rows: this test changes only to add columns.
func TestAddStoresRowAndIndexRows(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	created, err := letters.Add(t.Context(), pendingLetter())
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	const row = "msg=231-20261121T110000.000000Z"
	listed := map[string]any{
		"Engine": "hmac", "InstanceId": "publisher", "OriginalQueue": "hmac-rotation-queue",
		"ErrorMessage": "vault said no: password=[redacted]", "ErrorSignature": ErrorSignature("vault said no: password=[redacted]"),
		"DequeueCount": int32(5), "FirstFailureAtUtc": noon().Add(-time.Minute), "LastFailureAtUtc": noon(),
		"Status": "Pending", "CorrelationId": "run/1",
	}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{}
		for _, m := range []map[string]any{listed, more} {
			for name, v := range m {
				all[name] = v
			}
		}
		return all
	}
	index := with(map[string]any{"TargetRowKey": row})
	want := []tables.Entity{
		{Key: tables.Key{Partition: "hmac", Row: row}, Properties: with(map[string]any{
			"MessageId": "msg#1", "InsertedAtUtc": noon().Add(-time.Hour).Truncate(time.Second),
			"OriginalMessage": `{"secretText": "kept"}`, "DetectedReason": "AttemptsExhausted",
		})},
		{Key: tables.Key{Partition: "hmac", Row: "~P-251607038399876543-" + digest(row)}, Properties: with(map[string]any{"TargetRowKey": row, "ByInstance": true})},
		{Key: tables.Key{Partition: "hmac", Row: "~c-" + digest("run/1") + "-251607038399876543-" + digest(row)}, Properties: index},
		{Key: tables.Key{Partition: "hmac", Row: "~i-" + digest("publisher") + "-P-251607038399876543-" + digest(row)}, Properties: index},
		{Key: tables.Key{Partition: "hmac", Row: "~n-" + digest(row)[:1]}, Properties: map[string]any{"Pending": int64(1),
			"Causes": `[{"signature":"` + ErrorSignature("vault said no: password=[redacted]") + `","pending":1,"first":"2026-11-21T11:59:00.123456Z"}]`}},
	}
	if diff := cmp.Diff(want, allRows(t, store, DefaultDeadLetterTable, "hmac")); diff != "" {
		t.Errorf("stored rows (-want +got):\n%s", diff)
	}
}

func TestAddOnce(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	var created atomic.Int32
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			letter := pendingLetter()
			letter.ErrorMessage = fmt.Sprintf("attempt %d", i)
			letter.LastFailureAtUtc = noon().Add(time.Duration(i) * time.Second)
			ok, err := letters.Add(t.Context(), letter)
			if err != nil {
				t.Error(err)
			}
			if ok {
				created.Add(1)
			}
		})
	}
	wait.Wait()
	before := allRows(t, store, DefaultDeadLetterTable, "hmac")
	if created.Load() != 1 || len(before) != 5 {
		t.Errorf("%d created, %d rows, want 1 and 5", created.Load(), len(before))
	}
	late := pendingLetter()
	late.ErrorMessage = "another error"
	if ok, err := letters.Add(t.Context(), late); ok || err != nil {
		t.Errorf("second: created %v, %v", ok, err)
	}
	if diff := cmp.Diff(before, allRows(t, store, DefaultDeadLetterTable, "hmac")); diff != "" {
		t.Errorf("the second writer changed rows:\n%s", diff)
	}
}

func TestDeadLetterReadsBack(t *testing.T) {
	t.Parallel()
	_, _, letters := newTables(t)
	want := pendingLetter()
	want.Status = StatusResolved
	want.ResolutionNotes, want.ResolvedAtUtc, want.ResolvedBy = "Retried", noon().Add(time.Hour), "someone"
	addLetter(t, letters, want)
	got, err := letters.Get(t.Context(), "hmac", "msg=231-20261121T110000.000000Z")
	if err != nil {
		t.Fatal(err)
	}
	if got.ETag == "" {
		t.Error("no ETag")
	}
	want.ErrorMessage = "vault said no: password=[redacted]"
	want.ErrorSignature = ErrorSignature(want.ErrorMessage)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(DeadLetter{}, "RowKey", "ETag")); diff != "" {
		t.Errorf("dead letter (-want +got):\n%s", diff)
	}
}

func TestOriginalMessageKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for name, original := range map[string]string{
		"empty":      "",
		"text":       "not JSON",
		"control":    "\x01\x1f\x7f\u2028",
		"nul":        "a\x00b",
		"binary":     "\xff\xfe\x00",
		"surrogates": "\xed\xa0\x80",
		"full size":  strings.Repeat("x", 64<<10),
		"full wide":  strings.Repeat("😀", 16<<10),
		"full bytes": strings.Repeat("\xff", 64<<10),
		"bom":        "\ufeff{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, letters := newTables(t)
			letter := pendingLetter()
			letter.OriginalMessage = []byte(original)
			addLetter(t, letters, letter)
			got, err := letters.Get(t.Context(), "hmac", "msg=231-20261121T110000.000000Z")
			if err != nil || !bytes.Equal(got.OriginalMessage, []byte(original)) {
				t.Errorf("got %.40q, %v, want %.40q", got.OriginalMessage, err, original)
			}
		})
	}
}

func TestAddWithoutInsertionTime(t *testing.T) {
	t.Parallel()
	_, _, letters := newTables(t)
	letter := pendingLetter()
	letter.InsertedAtUtc = time.Time{}
	for i, want := range []bool{true, false} {
		letter.LastFailureAtUtc = letter.LastFailureAtUtc.Add(time.Second)
		if ok, err := letters.Add(t.Context(), letter); ok != want || err != nil {
			t.Errorf("delivery %d: created %v, %v", i, ok, err)
		}
	}
	got, err := letters.Get(t.Context(), "hmac", "msg=231-19700101T000000.000000Z")
	if err != nil || !got.InsertedAtUtc.IsZero() {
		t.Errorf("inserted at %v, %v", got.InsertedAtUtc, err)
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(d *DeadLetter)
		tooLong bool
	}{
		"no engine":           {change: func(d *DeadLetter) { d.Engine = "" }},
		"no message id":       {change: func(d *DeadLetter) { d.MessageID = "" }},
		"no correlation id":   {change: func(d *DeadLetter) { d.CorrelationID = "" }},
		"no last failure":     {change: func(d *DeadLetter) { d.LastFailureAtUtc = time.Time{} }},
		"unknown status":      {change: func(d *DeadLetter) { d.Status = "Retrying" }},
		"long message id":     {change: func(d *DeadLetter) { d.MessageID = strings.Repeat("x", 129) }, tooLong: true},
		"long correlation id": {change: func(d *DeadLetter) { d.CorrelationID = strings.Repeat("x", 129) }, tooLong: true},
		"long instance id":    {change: func(d *DeadLetter) { d.InstanceID = strings.Repeat("x", 513) }, tooLong: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _, letters := newTables(t)
			letter := pendingLetter()
			test.change(&letter)
			created, err := letters.Add(t.Context(), letter)
			if created || err == nil || errors.Is(err, ErrIDTooLong) != test.tooLong || len(store.applied) != 0 {
				t.Errorf("created %v, error %v, want ErrIDTooLong: %v", created, err, test.tooLong)
			}
		})
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	_, _, letters := newTables(t)
	add := func(message, correlation string, status DeadLetterStatus, after time.Duration) {
		letter := pendingLetter()
		letter.MessageID, letter.CorrelationID, letter.Status = message, correlation, status
		letter.LastFailureAtUtc = noon().Add(after)
		addLetter(t, letters, letter)
	}
	add("a", "run", StatusPending, 1*time.Second)
	add("b", "run", StatusPending, 3*time.Second)
	add("c", "run", StatusResolved, 2*time.Second)
	add("d", "run-1", StatusPending, 2*time.Second)
	got, err := letters.Pending(t.Context(), "hmac", "run")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, letter := range got {
		rows = append(rows, letter.RowKey)
		if letter.OriginalMessage != nil {
			t.Error("the message itself is no part of a list")
		}
	}
	want := []string{"b-20261121T110000.000000Z", "a-20261121T110000.000000Z"}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

func TestErrorSignature(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{
			`Get "https://a.example/x": status 503 after 1.2s, request 5b4b8a9c-0c52-4b0e-9e6a-0a4e4b7a1f00`,
			`get "https://b.example/y":  STATUS 429 after 17s, request 00000000-1111-2222-3333-444444444444`,
		},
		{"can't read 0xdeadbeef of 'vault a'", "can't read 0x1 of 'vault b'"},
		{"version deadbeefcafe is gone", "version 3f2a is gone"},
		{"step12 failed", "step7 failed"},
	}
	seen := map[string]string{}
	for _, group := range same {
		for _, message := range group {
			if got := ErrorSignature(message); got != ErrorSignature(group[0]) || len(got) != 16 {
				t.Errorf("%q: %s, want the signature of %q", message, got, group[0])
			}
		}
		if other, ok := seen[ErrorSignature(group[0])]; ok {
			t.Errorf("%q and %q share a signature", group[0], other)
		}
		seen[ErrorSignature(group[0])] = group[0]
	}
}
