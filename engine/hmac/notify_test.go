package hmac_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

func TestNotifyPublishesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := hmac.NotifyInput{InstanceID: instance, TenantID: "t1", SecretName: "hmac-x", Version: strings.Repeat("0a", 16)}
	otherVersion, otherTenant, noTenant := first, first, first
	otherVersion.Version = strings.Repeat("0b", 16)
	otherTenant.TenantID = "t2"
	noTenant.TenantID = ""
	type event struct{ Tenant, Type, Payload string }
	want := map[string]event{}
	for _, in := range []hmac.NotifyInput{first, first, otherVersion, otherTenant, noTenant, first} {
		out, err := w.steps(t).Notify(t.Context(), in) // each time another process
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hmac.NotifyOutput{InstanceID: instance, SecretName: in.SecretName, Version: in.Version, EventID: out.EventID}, out); diff != "" {
			t.Errorf("Notify (-want +got):\n%s", diff)
		}
		tenant := in.TenantID
		if tenant == "" {
			tenant = "publisher"
		}
		key := outbox.Key(tenant, "hmac", instance, "rotated", in.SecretName+"/"+in.Version)
		if out.EventID != key.String() {
			t.Errorf("the event is %s, want %s", out.EventID, key)
		}
		want[out.EventID] = event{tenant, "hmac.rotated", `{"instanceId":"` + instance + `","secretName":"hmac-x","version":"` + in.Version + `"}`}
	}
	got := map[string]event{}
	for _, e := range w.events(t) {
		got[e.ID] = event{e.TenantID, e.EventType, string(e.Payload)}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 4 {
		t.Errorf("events (-want +got):\n%s", diff)
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
