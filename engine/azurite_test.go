package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
)

// Keys, ranges and orders are the same on the real service's protocol, with ids of every special kind.
func TestTablesOnAzurite(t *testing.T) {
	t.Parallel()
	store, err := azure.NewTables(storage.Account(t))
	if err != nil {
		t.Fatal(err)
	}
	history := NewHistory(store, azuritetest.Name("history"))
	letters := NewDeadLetters(store, azuritetest.Name("dlq"))
	if err := errors.Join(history.CreateTable(t.Context()), letters.CreateTable(t.Context())); err != nil {
		t.Fatal(err)
	}
	ids := []string{"plain", "plain-20261121T120000.123456Z", "/subscriptions/1\\x#y?z", "100%", "it's", "~P-", "a=b c+d&e", "日本語", "😀", "\ue000", "x\x01y"}
	var want []string
	for i, id := range ids {
		entry := rotateEntry()
		entry.CorrelationID, entry.InstanceID, entry.TenantID = id, cleanText(id), id
		entry.CreatedAtUtc = noon().Add(time.Duration(i/2) * time.Microsecond) // two at a time
		letter := pendingLetter()
		letter.MessageID, letter.CorrelationID, letter.InstanceID = id, id, entry.InstanceID
		letter.OriginalMessage, letter.TenantID = []byte(id+"\xff\x00"), id
		letter.LastFailureAtUtc = entry.CreatedAtUtc
		for range 2 {
			recordEntries(t, history, entry)
			addLetter(t, letters, letter)
		}
		run, err := history.Run(t.Context(), "hmac", id)
		if err != nil || len(run) != 1 {
			t.Fatalf("%q: run of %d, %v", id, len(run), err)
		}
		if got, err := history.Get(t.Context(), "hmac", run[0].RowKey); err != nil || got.ETag == "" {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
		pending, err := letters.Pending(t.Context(), "hmac", id)
		if err != nil || len(pending) != 1 {
			t.Fatalf("%q: %d pending, %v", id, len(pending), err)
		}
		if got, err := letters.Get(t.Context(), "hmac", pending[0].RowKey); err != nil || string(got.OriginalMessage) != id+"\xff\x00" {
			t.Errorf("%q: message %q, %v", id, got.OriginalMessage, err)
		}
		page, err := history.List(t.Context(), HistoryFilter{Engines: []string{"hmac"}, InstanceID: entry.InstanceID})
		if err != nil || len(page.Entries) != 1 {
			t.Errorf("%q: %d entries of the instance, %v", id, len(page.Entries), err)
		}
		own, err := history.List(t.Context(), HistoryFilter{Engines: []string{"hmac"}, TenantID: strings.ToUpper(entry.InstanceID)})
		if err != nil || len(own.Entries) != 1 {
			t.Errorf("%q: %d entries of the tenant, %v", id, len(own.Entries), err)
		}
		ofTenant, err := letters.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}, TenantID: strings.ToUpper(entry.InstanceID)})
		if err != nil || len(ofTenant.DeadLetters) != 1 {
			t.Errorf("%q: %d dead letters of the tenant, %v", id, len(ofTenant.DeadLetters), err)
		}
		want = append(want, place(entry.CreatedAtUtc, run[0].RowKey))
	}
	slices.Sort(want)
	f := HistoryFilter{Engines: []string{"hmac", "tls"}, Limit: 3, From: noon(), To: noon().Add(time.Hour)}
	var got []string
	for {
		page, err := history.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			got = append(got, place(e.CreatedAtUtc, e.RowKey))
		}
		if f.Token = page.Token; f.Token == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("walk (-want +got):\n%s", diff)
	}
	all, err := letters.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}, Status: StatusPending})
	if err != nil || len(all.DeadLetters) != len(ids) {
		t.Errorf("%d dead letters, %v, want %d", len(all.DeadLetters), err, len(ids))
	}
}

// The service accepts the largest transaction of Record.
func TestLargestRecordOnAzurite(t *testing.T) {
	t.Parallel()
	store, err := azure.NewTables(storage.Account(t))
	if err != nil {
		t.Fatal(err)
	}
	history := NewHistory(store, azuritetest.Name("history"))
	if err := history.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	for i := range 60 {
		entry := rotateEntry()
		entry.RunStatus = ""
		entry.Input = fmt.Appendf(nil, `"%0*d<"`, maxDocument/10, i)
		entry.CreatedAtUtc = noon().Add(time.Duration(i) * time.Microsecond)
		entries = append(entries, entry)
	}
	recordEntries(t, history, entries...)
	run, err := history.Run(t.Context(), "hmac", "run/1")
	if err != nil || len(run) != len(entries) {
		t.Fatalf("%d entries, %v", len(run), err)
	}
	for i, entry := range run {
		if string(entry.Input) != string(entries[i].Input) {
			t.Errorf("entry %d: input of %d bytes, want %d", i, len(entry.Input), len(entries[i].Input))
		}
	}
}
