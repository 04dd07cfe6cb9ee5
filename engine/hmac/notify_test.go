package hmac_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
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
		out, err := w.steps(t).Notify(t.Context(), in) // another process each time
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
	for _, e := range w.outbox.Events() {
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

// The first announcement is fixed, and repeats are the same, by any process, at any time, with any settings.
func TestNotifyTellsTheTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.timing = &hmac.Timing{Propagation: 10 * time.Minute, Grace: time.Hour}
	began := start.Truncate(time.Second)
	made, err := w.steps(t).Rotate(t.Context(), input("a", "j"))
	if err != nil {
		t.Fatal(err)
	}
	w.move(start.Add(3 * time.Hour)) // the time of the announcement counts, not that of the version's creation
	first := w.tell(t, made)
	want := hmac.NotifyOutput{InstanceID: instance, SecretName: made.SecretName, Version: made.Version, ActiveAtUtc: began.Add(3*time.Hour + 10*time.Minute), EventID: first.EventID}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the first (-want +got):\n%s", diff)
	}
	w.move(start.Add(5 * time.Hour))
	w.timing = &hmac.Timing{Grace: 2 * time.Hour}
	second := w.turn(t, "b")
	want = hmac.NotifyOutput{InstanceID: instance, SecretName: made.SecretName, Version: second.Version, ActiveAtUtc: began.Add(5 * time.Hour),
		PreviousVersion: made.Version, GraceEndsAtUtc: began.Add(7 * time.Hour), EventID: second.EventID}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
	events := w.outbox.Events()
	w.move(start.Add(100 * time.Hour))
	w.turn(t, "c")
	for _, told := range []hmac.NotifyOutput{first, second} {
		again, err := w.steps(t).Notify(t.Context(), hmac.NotifyInput{InstanceID: instance, TenantID: "t1", SecretName: told.SecretName, Version: told.Version})
		if err != nil || again != told {
			t.Errorf("again: %+v, %v; want %+v", again, err, told)
		}
	}
	if now := w.outbox.Events(); len(now) != 3 {
		t.Errorf("%d events, want 3", len(now))
	}
	for _, e := range events {
		var payload hmac.NotifyOutput
		if err := json.Unmarshal(e.Payload, &payload); err != nil || e.OrderKey != made.SecretName {
			t.Errorf("%v, order key %q", err, e.OrderKey)
		}
		payload.EventID = e.ID
		if payload != first && payload != second {
			t.Errorf("payload %s", e.Payload)
		}
	}
}

// A version becomes active after all previously announced ones: neither clocks nor settings change that.
func TestNotifyKeepsTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.timing = &hmac.Timing{Propagation: time.Hour, Grace: 24 * time.Hour}
	a := w.turn(t, "a")
	w.timing = &hmac.Timing{Propagation: time.Minute, Grace: 2 * time.Hour}
	b := w.turn(t, "b")
	w.move(start.Add(-time.Hour))
	c := w.turn(t, "c")
	for i, told := range []hmac.NotifyOutput{b, c} {
		before := []hmac.NotifyOutput{a, b}[i]
		if told.PreviousVersion != before.Version || told.ActiveAtUtc.Sub(before.ActiveAtUtc) != time.Second ||
			told.GraceEndsAtUtc.Sub(told.ActiveAtUtc) != w.timing.Grace-w.timing.Propagation {
			t.Errorf("%+v after %+v", told, before)
		}
	}
}

// Each version names its predecessor.
func TestNotifyNamesThePredecessor(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		prepare func(t *testing.T, w *world) (previous string)
	}{
		{"nothing", func(*testing.T, *world) string { return "" }},
		{"one made by hand", func(t *testing.T, w *world) string { return w.byHand(t) }},
		{"that of a slot", func(t *testing.T, w *world) string { return w.turn(t, "a").Version }},
		{"that of a slot before one made by hand", func(t *testing.T, w *world) string { v := w.turn(t, "a").Version; w.byHand(t); return v }},
		{"of two slots the later one", func(t *testing.T, w *world) string { w.turn(t, "a"); return w.turn(t, "b").Version }},
		{"none that nobody was told of", func(t *testing.T, w *world) string { v := w.turn(t, "a").Version; rotateAs(t, w, "b", "j"); return v }},
		{"none that nobody decided", func(t *testing.T, w *world) string {
			tags := map[string]string{hmac.TagSlot: "b", hmac.TagJob: "dead"}
			if _, err := w.vault.Add(t.Context(), secrets.Name(hmac.Engine, instance), make([]byte, hmac.KeySize), tags); err != nil {
				t.Fatal(err)
			}
			return ""
		}},
		{"none that is disabled", func(t *testing.T, w *world) string {
			v, b := w.turn(t, "a").Version, w.turn(t, "b")
			if err := w.vault.Disable(t.Context(), b.SecretName, b.Version); err != nil {
				t.Fatal(err)
			}
			return v
		}},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := c.prepare(t, w)
			if told := w.turn(t, slot); told.PreviousVersion != want || told.GraceEndsAtUtc.IsZero() != (want == "") {
				t.Errorf("%+v, want it to take the place of %q", told, want)
			}
		})
	}
}

// A version of no slot is announced with the data of the secret store.
func TestNotifyOfOtherVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := secrets.Name(hmac.Engine, instance)
	foreign := w.byHand(t)
	w.move(start.Add(72 * time.Hour))
	for version, active := range map[string]time.Time{foreign: start.Truncate(time.Second).Add(hmac.DefaultTiming().Propagation), strings.Repeat("0a", 16): {}} {
		told := w.tell(t, hmac.RotateOutput{SecretName: name, Version: version})
		want := hmac.NotifyOutput{InstanceID: instance, SecretName: name, Version: version, ActiveAtUtc: active, EventID: told.EventID}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// An unusable version of a slot is not announced.
func TestNotifyOfAnUnusableVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.steps(t).Rotate(t.Context(), input(slot, "j"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.stepsOver(t, newWorld(t).vault, w.tables).Notify(t.Context(), notice(made)); !errors.Is(err, hmac.ErrVersionMissing) {
		t.Errorf("Notify of a missing version = %v", err)
	}
	if err := w.vault.Disable(t.Context(), made.SecretName, made.Version); err != nil {
		t.Fatal(err)
	}
	if _, err := w.steps(t).Notify(t.Context(), notice(made)); !errors.Is(err, hmac.ErrVersionDisabled) {
		t.Errorf("Notify of a disabled version = %v", err)
	}
	if events := w.outbox.Events(); len(events) != 0 {
		t.Errorf("events: %v", events)
	}
	if told := w.turn(t, slot); told.Version == made.Version {
		t.Error("the slot has got no other version")
	}
}
