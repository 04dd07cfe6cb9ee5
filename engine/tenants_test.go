package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// History and dead letters of a message belong to its tenant, with any outcome; only the platform sees unreadable
// messages.
func TestWhatIsSaidAboutAMessageBelongsToItsTenant(t *testing.T) {
	t.Parallel()
	jammed := func(err error) func(*world) {
		return func(w *world) { w.turn = func(context.Context) error { return err } }
	}
	none := func(*world) {}
	type said struct {
		History []string // tenants of the entries
		Dead    []string // tenants of the dead letters
	}
	const own = "Contoso"
	for name, c := range map[string]struct {
		body  string
		world func(*world)
		want  said
	}{
		"it succeeds":                 {good, none, said{History: []string{own, own}}},
		"it fails for good":           {good, jammed(orchestrator.Permanent(errors.New("no"))), said{[]string{own}, []string{own}}},
		"its attempts are used up":    {good, jammed(errors.New("no")), said{[]string{own, own, own, own}, []string{own}}},
		"a signal wakes it":           {good, func(w *world) { w.waits = true }, said{History: []string{own, own}}},
		"a signal leads it to an end": {good, func(w *world) { w.waits = true; jammed(orchestrator.Permanent(errors.New("no")))(w) }, said{[]string{own}, []string{own}}},
		"it is for another engine":    {strings.Replace(good, "turntable", "other", 1), none, said{Dead: []string{own}}},
		"it is the platform's":        {`{"correlationId":"c1","input":{"degrees":90}}`, none, said{History: []string{"", ""}}},
		"it cannot be decoded":        {`{"correlationId":"c1","tenantId":"Contoso","input":`, none, said{Dead: []string{""}}},
		"something in it is too long": {`{"correlationId":"c1","tenantId":"Contoso","instanceId":"` + strings.Repeat("x", 600) + `"}`, none, said{Dead: []string{""}}},
		"it names an endless tenant":  {`{"correlationId":"c1","tenantId":"` + strings.Repeat("x", 600) + `"}`, none, said{Dead: []string{""}}},
		"its tenant has a NUL":        {`{"correlationId":"c1","tenantId":"a\u0000b","input":{"degrees":1}}`, none, said{History: []string{"a\ufffdb", "a\ufffdb"}}},
		"its longest tenant has NULs": {`{"correlationId":"c1","tenantId":"` + strings.Repeat(`\u0000`, 512) + `"}`, none, said{Dead: []string{""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.world(w)
				w.Send(testQueue, c.body)
				if w.waits {
					w.hostOnce(t, w.Restart(nil))
					w.event(t, "c1", 0)
				}
				w.Restart(nil).Run()
				var got said
				for _, e := range w.History("turntable", "c1") {
					got.History = append(got.History, e.TenantID)
				}
				for _, l := range w.DeadLetters("turntable") {
					got.Dead = append(got.Dead, l.TenantID)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("tenants (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A retried dead letter keeps its tenant, and so does the outcome of the retry.
func TestRetriesKeepTheTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("no")) }
		w.Send(testQueue, good)
		p := w.Restart(nil)
		p.Run()
		w.retry(t, onePending(t, w, "turntable"))
		p.Run()
		page, err := engine.NewDeadLetters(w.Tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{"turntable"}, TenantID: "contoso"})
		if err != nil || len(page.DeadLetters) != 2 || page.DeadLetters[0].Status == page.DeadLetters[1].Status {
			t.Errorf("%+v, %v", page.DeadLetters, err)
		}
		w.turn = nil
		w.retry(t, onePending(t, w, "turntable"))
		p.Run()
		if s, err := w.Runtime().Status(t.Context(), "turntable-c1"); err != nil || s.TenantID != "Contoso" || s.Status != orchestrator.Completed {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// A message under the correlation id of another tenant's run becomes its own tenant's dead letter, and the run
// continues.
func TestAMessageForTheRunOfAnotherTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits = true
		p := w.Restart(nil)
		w.Send(testQueue, good)
		w.hostOnce(t, p)
		w.Send(testQueue, strings.Replace(good, "Contoso", "fabrikam", 1))
		w.hostOnce(t, p)
		dead := onePending(t, w, "turntable")
		if dead.TenantID != "fabrikam" || dead.DetectedReason != engine.ReasonCorrelationConflict || !strings.Contains(dead.ErrorMessage, "another tenant") {
			t.Errorf("%+v", dead)
		}
		w.event(t, "c1", 0)
		p.Run()
		entries := w.History("turntable", "c1")
		for _, e := range entries {
			if e.TenantID != "Contoso" {
				t.Errorf("%+v", e)
			}
		}
		if len(entries) != 2 || entries[1].RunStatus != engine.StatusSucceeded {
			t.Errorf("%+v", entries)
		}
	})
}

// A start belongs to the tenant of its message, or else to that of the start; the two must not differ.
func TestTenantsOfAdmittedStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Restart(nil)
	for _, c := range []struct {
		start, message, want string
		err                  error
	}{
		{"", "", "", nil}, {"", "contoso", "contoso", nil}, {"contoso", "", "contoso", nil},
		{"contoso", "CONTOSO", "CONTOSO", nil}, {"contoso", "fabrikam", "", engine.ErrRefused},
	} {
		s, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "turntable", TenantID: c.start, Input: []byte(`{"tenantId":"` + c.message + `"}`)})
		if !errors.Is(err, c.err) || err == nil && (s.TenantID != c.want || c.want != "" && !strings.Contains(string(s.Carry), `"tenantId":"`+c.want)) {
			t.Errorf("%+v: %+v, %v", c, s, err)
		}
	}
}
