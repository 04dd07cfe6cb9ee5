package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// statuses fills a world with four messages of each status and of each of two tenants: 0..3 pending, 4..7 failed, 8..11
// processed, 12..15 dead, of two event types in turn, a minute apart.
func (w *world) statuses(t testing.TB) *process {
	t.Helper()
	fate := func(e Event) error {
		body := struct{ N int }{N: -1}
		_ = json.Unmarshal(e.Payload, &body) // other messages succeed
		switch body.N / 4 {
		case 1:
			return errors.New("no line")
		case 3:
			return &DeliveryError{Permanent: true, Err: errors.New("never")}
		}
		return nil
	}
	w.deliver = func(_ context.Context, e Event) error { return fate(e) }
	w.options.CircuitFailures = 1000
	p := w.process(t, nil)
	add := func(n int) {
		for _, tenant := range []string{"acme", "/b"} {
			m := message1(n)
			m.TenantID, m.EventType = tenant, fmt.Sprint("type.", n%2)
			p.add(t, m)
		}
	}
	for n := 4; n < 16; n++ {
		add(n)
		w.pass(time.Minute)
	}
	p.sweep(t)
	for n := range 4 {
		add(n)
		w.pass(time.Minute)
	}
	return p
}

// all walks a list to its end and checks its pages.
func (p *process) all(t testing.TB, f Filter) (records []Record) {
	t.Helper()
	for pages := 0; pages < 100; pages++ {
		page := testenv.Must(p.admin.List(t.Context(), f))(t)
		records = append(records, page.Records...)
		if page.Continuation == "" {
			return records
		}
		if len(page.Records) == 0 {
			t.Fatal("an empty page with a continuation")
		}
		f.Continuation = page.Continuation
	}
	t.Fatal("the list does not end")
	return nil
}

// numbers returns the messages of a list, by the numbers of message1.
func numbers(records []Record) (out []int) {
	for _, r := range records {
		for n := range 40 {
			if key(n) == r.IdempotencyKey {
				out = append(out, n)
			}
		}
	}
	return out
}

func TestAdminList(t *testing.T) {
	t.Parallel()
	pending := func(t *testing.T, w *world) {
		p := w.statuses(t)
		got := p.all(t, Filter{Status: StatusPending, TenantID: "acme", Limit: 3})
		list := numbers(got)
		if len(list) != 8 {
			t.Fatal(list)
		}
		// The failed ones are due at one time, ten seconds after the first of the others.
		slices.Sort(list[1:5])
		testenv.Equal(t, "", []int{0, 4, 5, 6, 7, 1, 2, 3}, list)
		for _, r := range got {
			if r.Status != StatusPending || !r.ProcessedAt.IsZero() {
				t.Errorf("%+v", r)
			}
		}
	}
	integration(t, "Admin_List_Pending", pending)
	integration(t, "Admin_Filter_Failed", func(t *testing.T, w *world) {
		p := w.statuses(t)
		got := p.all(t, Filter{Status: StatusFailed, TenantID: "acme", Limit: 3})
		testenv.Equal(t, "", []int{4, 5, 6, 7}, numbers(got))
		for _, r := range got {
			if r.RetryCount != 1 || r.Error != "no line" || !r.ProcessedAt.IsZero() {
				t.Errorf("%+v", r)
			}
		}
	})
	integration(t, "Outbox_Admin_Filter_By_Status", func(t *testing.T, w *world) {
		p := w.statuses(t)
		for _, c := range []struct {
			name   string
			filter Filter
			want   []int
		}{
			{"processed, newest first", Filter{Status: StatusProcessed, TenantID: "/b"}, []int{8, 9, 10, 11}},
			{"dead", Filter{Status: StatusDead, TenantID: "/b"}, []int{12, 13, 14, 15}},
			{"all", Filter{TenantID: "/b"}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
			{"of one type", Filter{Status: StatusDead, TenantID: "/b", EventType: "type.1"}, []int{13, 15}},
			{"of an age", Filter{TenantID: "/b", CreatedFrom: noon().Add(time.Minute), CreatedTo: noon().Add(5 * time.Minute)}, []int{5, 6, 7, 8}},
			{"failed of an age", Filter{Status: StatusFailed, TenantID: "/b", CreatedTo: noon().Add(2 * time.Minute)}, []int{4, 5}},
			{"dead of an age", Filter{Status: StatusDead, TenantID: "/b", CreatedFrom: noon().Add(10 * time.Minute)}, []int{14, 15}},
			{"none", Filter{TenantID: "nobody"}, nil},
			{"skipped", Filter{Status: StatusSkipped}, nil},
		} {
			for _, limit := range []int{1, 3, 500} {
				c.filter.Limit = limit
				got := numbers(p.all(t, c.filter))
				slices.Sort(got)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s by %d: %s", c.name, limit, diff)
				}
			}
		}
		if got := p.all(t, Filter{Status: StatusDead, Limit: 3}); len(got) != 8 || got[0].TenantID != "/b" || got[7].TenantID != "acme" {
			t.Errorf("of all tenants: %+v", got)
		}
	})
	t.Run("newest first", func(t *testing.T) {
		w, p := start(t)
		for n := range 3 {
			p.add(t, message1(n))
			p.sweep(t)
			w.pass(time.Minute)
		}
		testenv.Equal(t, "", []int{2, 1, 0}, numbers(p.all(t, Filter{Status: StatusProcessed, Limit: 1})))
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p := w.statuses(t)
		page := testenv.Must(p.admin.List(t.Context(), Filter{TenantID: "acme", Limit: 1}))(t)
		for _, c := range []struct {
			f    Filter
			want error
		}{
			{Filter{Status: "odd"}, ErrInvalid},
			{Filter{Limit: 501}, ErrInvalid},
			{Filter{TenantID: strings.Repeat("x", 129)}, ErrInvalid},
			{Filter{Continuation: "?"}, ErrToken},
			{Filter{Continuation: "e30"}, ErrToken},
			{Filter{Continuation: page.Continuation}, ErrToken},
			{Filter{TenantID: "acme", Continuation: (&Filter{TenantID: "acme"}).token(position{Tenant: "acme", Row: "p-%"})}, ErrToken},
			{Filter{TenantID: "acme", Continuation: (&Filter{TenantID: "acme"}).token(position{Tenant: "other", Row: "p-1"})}, ErrToken},
			{Filter{TenantID: "acme", Continuation: (&Filter{TenantID: "acme"}).token(position{Tenant: "acme", Band: 9, Row: "p-1"})}, ErrToken},
		} {
			if _, err := p.admin.List(t.Context(), c.f); !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c.f, err)
			}
		}
		if _, err := p.admin.Get(t.Context(), "acme", "unknown"); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("a page costs what it holds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var list []Message
		for n := range 3000 {
			list = append(list, message1(n))
		}
		testenv.Must(w.process(t, nil).writer.AddMany(t.Context(), "acme", list))(t)
		plan := &faults.Plan{}
		page, err := w.process(t, plan).admin.List(t.Context(), Filter{Status: StatusPending, TenantID: "acme"})
		if err != nil || len(page.Records) != DefaultLimit || len(plan.Calls()) != 1 {
			t.Errorf("%d records in %d calls, %v", len(page.Records), len(plan.Calls()), err)
		}
	})
}

func TestAdminActions(t *testing.T) {
	t.Parallel()
	id := func(n int) string { return key(n).String() }
	integration(t, "retry, skip, replay", func(t *testing.T, w *world) {
		p := w.statuses(t)
		w.deliver = nil
		a := p.admin
		err := errors.Join(
			a.Retry(t.Context(), "acme", id(12), "me"), a.Retry(t.Context(), "acme", id(4), "me"), a.Skip(t.Context(), "acme", id(13), "me"),
			a.Skip(t.Context(), "acme", id(5), "me"), a.Skip(t.Context(), "acme", id(0), "me"), a.Replay(t.Context(), "acme", id(8), "me"),
			a.Replay(t.Context(), "acme", id(14), "me"),
		)
		if err != nil {
			t.Fatal(err)
		}
		testenv.Equal(t, "", map[Status]int{StatusPending: 9, StatusProcessed: 3, StatusDead: 1, StatusSkipped: 3}, w.check(t, "acme"))
		if r := p.get(t, "acme", id(12)); r.RetryCount != 0 || !r.DeadAt.IsZero() || len(r.Attempts) != 1 {
			t.Errorf("%+v", r)
		}
		if r := p.get(t, "acme", id(13)); r.SkippedBy != "me" || !r.IsProcessed || r.Status != StatusSkipped {
			t.Errorf("%+v", r)
		}
		for _, err := range []error{a.Retry(t.Context(), "acme", id(9), "me"), a.Skip(t.Context(), "acme", id(9), "me"), a.Skip(t.Context(), "acme", id(13), "me")} {
			if !errors.Is(err, ErrState) {
				t.Error(err)
			}
		}
		w.pass(time.Minute)
		p.sweep(t)
		testenv.Equal(t, "", map[Status]int{StatusProcessed: 12, StatusDead: 1, StatusSkipped: 3}, w.check(t, "acme"))
		times := 0
		for _, e := range w.events() {
			times += boolToInt(e.TenantID == "acme" && e.Key == key(8))
		}
		if times != 2 {
			t.Errorf("the replayed message left %d times", times)
		}
	})
	t.Run("order keys", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.deliver = func(_ context.Context, e Event) error {
			if e.Key == key(0) {
				return errors.New("no line")
			}
			return nil
		}
		p := w.process(t, nil)
		for n := range 4 {
			m := message1(n)
			m.OrderKey = "k"
			p.add(t, m)
		}
		p.sweep(t)
		a := p.admin
		// A waiting message cannot be hurried; one leaves the queue, and then its head does.
		testenv.OK(t, errors.Join(a.Retry(t.Context(), "acme", id(1), "me"), a.Skip(t.Context(), "acme", id(2), "me"), a.Skip(t.Context(), "acme", id(0), "me")))
		testenv.Equal(t, "", map[Status]int{StatusPending: 2, StatusSkipped: 2}, w.check(t, "acme"))
		p.sweep(t)
		testenv.Equal(t, "", []int{1, 3}, numbersOf(w, "k"))
		testenv.OK(t, a.Replay(t.Context(), "acme", id(0), "me"))
		testenv.OK(t, a.Skip(t.Context(), "acme", id(0), "me"))
		testenv.Equal(t, "", map[string]int{"m": 4, "x": 4}, w.rows(t, "acme"))
	})
	t.Run("with storage that does not answer", func(t *testing.T) {
		t.Parallel()
		for _, action := range []Action{ActionRetry, ActionSkip, ActionReplay} {
			for at := 1; at <= 6; at++ {
				for _, fault := range []faults.Fault{faults.Unknown, faults.Applied, faults.CrashAfter} {
					w := newWorld(t)
					w.statuses(t)
					err := w.process(t, &faults.Plan{At: at, Fault: fault}).admin.Act(t.Context(), action, "acme", id(12), Decision{By: "me"})
					w.check(t, "acme")
					if err != nil {
						err = w.process(t, nil).admin.Act(t.Context(), action, "acme", id(12), Decision{By: "me"})
					}
					if got := w.process(t, nil).get(t, "acme", id(12)); err != nil && !errors.Is(err, ErrState) || got.Status == StatusDead {
						t.Errorf("%s, %s at %d: %v, %s", action, fault, at, err, got.Status)
					}
					w.check(t, "acme")
				}
			}
		}
	})
	integration(t, "by filter", func(t *testing.T, w *world) {
		p := w.statuses(t)
		w.deliver = nil
		run := func(action Action, f Filter) (done, slices int) {
			f.Limit = 3
			for {
				got, err := w.process(t, nil).admin.Bulk(t.Context(), action, f, "me")
				if err != nil || got.PassedOver != 0 {
					t.Fatalf("%+v, %v", got, err)
				}
				done, slices = done+got.Done, slices+1
				// Replayed messages leave while the walk continues.
				p.sweep(t)
				w.pass(time.Second)
				if f.Continuation = got.Continuation; f.Continuation == "" {
					return done, slices
				}
			}
		}
		if done, slices := run(ActionReplay, Filter{Status: StatusProcessed, CreatedTo: noon().Add(12 * time.Minute)}); done < 8 || slices < 3 {
			t.Errorf("replayed %d in %d slices", done, slices)
		}
		if done, _ := run(ActionRetry, Filter{Status: StatusDead, EventType: "type.0"}); done != 4 {
			t.Errorf("retried %d", done)
		}
		if done, _ := run(ActionSkip, Filter{Status: StatusDead}); done != 4 {
			t.Errorf("skipped %d", done)
		}
		if _, err := p.admin.Bulk(t.Context(), "burn", Filter{}, "me"); !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
		w.check(t, "acme")
	})
}

func TestRetention(t *testing.T) {
	t.Parallel()
	integration(t, "removes what was processed before", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		m := message1(30)
		m.Payload = text(spillPayload + 1)
		p.add(t, m)
		w.statuses(t) // processed at 12:12
		large := p.get(t, "acme", key(30).String())
		if large.Status != StatusProcessed {
			t.Fatalf("%+v", large)
		}
		if n, more, err := p.admin.Retention(t.Context(), noon().Add(12*time.Minute), 100); n != 0 || more || err != nil {
			t.Errorf("%d, %v, %v", n, more, err)
		}
		removed := 0
		for slices := 1; ; slices++ {
			n, more, err := w.process(t, nil).admin.Retention(t.Context(), noon().Add(12*time.Minute+time.Microsecond), 4)
			if err != nil || n > 4 {
				t.Fatal(n, err)
			}
			removed += n
			if !more {
				break
			}
			if slices == 10 {
				t.Fatal("it does not end")
			}
		}
		if removed != 9 {
			t.Errorf("%d are removed", removed)
		}
		testenv.Equal(t, "", map[Status]int{StatusPending: 8, StatusDead: 4}, w.check(t, "acme"))
		if _, err := p.admin.Get(t.Context(), "acme", key(30).String()); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		if _, _, err := p.admin.Retention(t.Context(), noon(), 501); !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("their payloads too", func(t *testing.T) {
		w, p := start(t)
		m := message1(1)
		m.Payload = text(spillPayload + 1)
		p.add(t, m)
		p.sweep(t)
		loaded, _, err := p.o.load(t.Context(), "acme", key(1).String())
		if err != nil {
			t.Fatal(err)
		}
		if n, _, err := p.admin.Retention(t.Context(), noon().Add(time.Hour), 0); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := w.blobs.Get(t.Context(), w.container, loaded.blob); !errors.Is(err, blobs.ErrNotFound) {
			t.Error(err)
		}
	})
}

// Any token is refused or continues a list, and causes no failure.
func FuzzToken(f *testing.F) {
	filter := Filter{TenantID: "acme", Limit: 1}
	f.Add("")
	f.Add(filter.token(position{Tenant: "acme", Row: "p-1"}))
	f.Fuzz(func(t *testing.T, token string) {
		p := newWorld(t).process(t, nil)
		filter := filter
		filter.Continuation = token
		if _, err := p.admin.List(t.Context(), filter); err != nil && !errors.Is(err, ErrToken) {
			t.Error(err)
		}
		if _, err := p.admin.Backfill(t.Context(), "acme", token, 1); err != nil && !errors.Is(err, ErrToken) {
			t.Error(err)
		}
	})
}
