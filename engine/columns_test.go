package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

// column returns a column of a row, the keys included; nil when the row does not have it.
func column(e tables.Entity, name string) any {
	switch name {
	case "PartitionKey":
		return e.Partition
	case "RowKey":
		return e.Row
	default:
		return e.Properties[name]
	}
}

// The columns of a dead letter are the standard's, by name and by type; those of a decision are null before it.
func TestDeadLetterColumns(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	d := pendingLetter()
	addLetter(t, letters, d)
	pending := allRows(t, store, DefaultDeadLetterTable, d.Engine)[0]
	if _, err := letters.Decide(t.Context(), d.Engine, pending.Row, Decision{Status: StatusResolved, Notes: ptr("by hand"), By: "ada", At: noon()}); err != nil {
		t.Fatal(err)
	}
	resolved := allRows(t, store, DefaultDeadLetterTable, d.Engine)[0]
	for name, c := range map[string]struct{ pending, resolved any }{
		"PartitionKey":      {"hmac", "hmac"},
		"RowKey":            {"msg=231-20261121T110000.000000Z", "msg=231-20261121T110000.000000Z"},
		"Engine":            {"hmac", "hmac"},
		"InstanceId":        {PublisherInstance, PublisherInstance},
		"OriginalQueue":     {"hmac-rotation-queue", "hmac-rotation-queue"},
		"OriginalMessage":   {`{"secretText": "kept"}`, `{"secretText": "kept"}`},
		"ErrorMessage":      {"vault said no: password=[redacted]", "vault said no: password=[redacted]"},
		"DequeueCount":      {int32(5), int32(5)},
		"FirstFailureAtUtc": {noon().Add(-time.Minute), noon().Add(-time.Minute)},
		"LastFailureAtUtc":  {noon(), noon()},
		"Status":            {"Pending", "Resolved"},
		"ResolutionNotes":   {nil, "by hand"},
		"ResolvedAtUtc":     {nil, noon()},
		"ResolvedBy":        {nil, "ada"},
		"CorrelationId":     {"run/1", "run/1"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.pending, column(pending, name)); diff != "" {
				t.Errorf("while it is pending (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.resolved, column(resolved, name)); diff != "" {
				t.Errorf("when it is resolved (-want +got):\n%s", diff)
			}
		})
	}
}

// The columns of a history entry are the standard's, by name and by type; it has an output or an error.
func TestHistoryColumns(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	failed := rotateEntry()
	failed.Status, failed.RunStatus, failed.Output, failed.Error, failed.CreatedAtUtc = StatusFailed, StatusFailed, nil, "no vault", noon().Add(time.Second)
	succeeded := rotateEntry()
	succeeded.RunStatus = ""
	recordEntries(t, history, succeeded, failed)
	rows := allRows(t, store, DefaultHistoryTable, "hmac")
	for name, c := range map[string]struct{ succeeded, failed any }{
		"PartitionKey":  {"hmac", "hmac"},
		"RowKey":        {"run=2F1-20261121T120000.123456Z", "run=2F1-20261121T120001.123456Z"},
		"Engine":        {"hmac", "hmac"},
		"InstanceId":    {PublisherInstance, PublisherInstance},
		"Operation":     {"rotate", "rotate"},
		"Status":        {"Succeeded", "Failed"},
		"DurationMs":    {int64(1234), int64(1234)},
		"Input":         {`{"slot":7}`, `{"slot":7}`},
		"Output":        {`{"keyVersion":"v2"}`, nil},
		"Error":         {nil, "no vault"},
		"CreatedAtUtc":  {noon(), noon().Add(time.Second)},
		"CorrelationId": {"run/1", "run/1"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.succeeded, column(rows[0], name)); diff != "" {
				t.Errorf("after a success (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.failed, column(rows[1], name)); diff != "" {
				t.Errorf("after a failure (-want +got):\n%s", diff)
			}
		})
	}
}
