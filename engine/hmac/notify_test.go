package hmac_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/tables"
)

func TestNotifyKeepsTheFirstNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := start
	steps, err := hmac.New(hmac.Config{Vault: w.vault, Tables: w.tables, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	in := hmac.NotifyInput{InstanceID: instance, TenantID: "t1", SecretName: "hmac-x", Version: strings.Repeat("0a", 16)}
	want := hmac.NotifyOutput{
		InstanceID: in.InstanceID, SecretName: in.SecretName, Version: in.Version,
		RecordedAtUtc: time.Date(2026, 11, 21, 0, 0, 0, 123456700, time.UTC),
	}
	for range 3 {
		got, err := steps.Notify(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Notify (-want +got):\n%s", diff)
		}
		now = now.Add(time.Hour)
	}
	in.Version = strings.Repeat("0b", 16)
	if _, err := steps.Notify(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	rows := w.rows(t, hmac.NoticesTable)
	if len(rows) != 2 {
		t.Fatalf("notices: %v, want 2", rows)
	}
	wantRow := map[string]any{
		"InstanceId": instance, "TenantId": "t1", "SecretName": "hmac-x",
		"Version": strings.Repeat("0a", 16), "RecordedAtUtc": want.RecordedAtUtc,
	}
	if diff := cmp.Diff(wantRow, rows[0].Properties); diff != "" || rows[0].Row != "hmac-x-"+strings.Repeat("0a", 16) {
		t.Errorf("row %s (-want +got):\n%s", rows[0].Row, diff)
	}
}

func TestNotifyErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	failing := tablesHook{w.tables, func(string, func() error) error { return tables.ErrThrottled }}
	in := hmac.NotifyInput{InstanceID: instance, SecretName: "hmac-x", Version: strings.Repeat("0a", 16)}
	_, err := w.stepsOver(t, w.vault, failing).Notify(t.Context(), in)
	if !errors.Is(err, tables.ErrThrottled) || errors.Is(err, hmac.ErrInput) || !strings.Contains(err.Error(), in.Version) {
		t.Errorf("Notify = %v, want the store's error, and what it was about", err)
	}
}
