package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// world is an audit log whose clock a test sets.
type world struct {
	log audit.Log
	at  time.Time
}

func newWorld(t testing.TB, store tables.Store, table string) *world {
	t.Helper()
	w := &world{at: noon()}
	w.log = audit.Log{Tables: store, Table: table, Now: func() time.Time { return w.at }}
	testenv.OK(t, w.log.CreateTable(t.Context()))
	return w
}

// all reads a whole list in pages of the given size.
func (w *world) all(t interface {
	Context() context.Context
	Fatalf(string, ...any)
}, f audit.Filter, size int) []audit.Entry {
	var found []audit.Entry
	for place, pages := "", 0; ; pages++ {
		page, err := w.log.List(t.Context(), f, size, place)
		if err != nil || pages > 1000 {
			t.Fatalf("%+v: %v after %d pages", f, err, pages)
		}
		found = append(found, page.Entries...)
		if place = page.Next; place == "" {
			return found
		}
	}
}

func stores(t *testing.T) map[string]tables.Store {
	t.Helper()
	real := testenv.Must(azure.NewTables(storage.Account(t)))(t)
	return map[string]tables.Store{"memory": tables.NewMemory(), "azurite": real}
}

// A recorded entry is read unchanged, with its end when that is recorded.
func TestEntries(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, store, "auditentries")
			whole := audit.Entry{Principal: "tenant/Object", Name: "Ann", Kind: "person", Permission: "orchestrations.command", Action: "terminate",
				Target: "orchestrations/a/1 é", Door: "api", TenantID: "red", CorrelationID: "c", Reason: "stuck", Before: "Running"}
			begun := testenv.Must(w.log.Begin(t.Context(), whole))(t)
			want := whole
			want.ID, want.At, want.Outcome = begun.ID, noon(), audit.Unknown
			testenv.Equal(t, "begun", []audit.Entry{want}, w.all(t, audit.Filter{}, 10))
			w.at = noon().Add(time.Second)
			for range 2 { // a second end changes nothing
				testenv.OK(t, w.log.End(t.Context(), begun, audit.Done, "Terminated"))
				w.at = w.at.Add(time.Second)
			}
			testenv.OK(t, w.log.End(t.Context(), begun, audit.Failed, "no"))
			want.Outcome, want.After, want.EndedAt = audit.Done, "Terminated", noon().Add(time.Second)
			for _, f := range []audit.Filter{{}, {Target: "ORCHESTRATIONS/A/1 É"}, {Principal: "Tenant/object"}} {
				testenv.Equal(t, fmt.Sprintf("%+v", f), []audit.Entry{want}, w.all(t, f, 1))
			}
			refused := audit.Entry{Action: "purge", Target: "orchestrations/b", Outcome: audit.Refused, After: "no", Door: "cli"}
			testenv.OK(t, w.log.Record(t.Context(), refused))
			if got := w.all(t, audit.Filter{Target: "orchestrations/b"}, 10); len(got) != 1 || got[0].Outcome != audit.Refused || got[0].After != "no" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Texts of any content are stored, and cut where they are too long.
func TestTextsOfAnyKind(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, store, "audittexts")
			for _, text := range []string{"a\x00b\xff", strings.Repeat("é", audit.MaxText), strings.Repeat("x", audit.MaxText), "/\\#?%'\n\t", "💥"} {
				e, err := w.log.Begin(t.Context(), audit.Entry{Principal: text, Name: text, Kind: text, Permission: text, Action: text, Target: text, Door: text,
					TenantID: text, CorrelationID: text, Reason: text, Before: text})
				if err == nil {
					err = w.log.End(t.Context(), e, audit.Failed, text)
				}
				if err != nil {
					t.Fatalf("%.20q: %v", text, err)
				}
				got := w.all(t, audit.Filter{Target: e.Target}, 5)
				if len(got) != 1 || got[0].Before != e.Before || got[0].After != e.Before || len(e.Before) > audit.MaxText {
					t.Errorf("%.20q: %d entries", text, len(got))
				}
			}
		})
	}
}

// Texts of callers are stored without secrets in every column, and a target is found by its original name.
func TestSecretsOfCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tables.NewMemory(), "")
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	e := testenv.Must(w.log.Begin(t.Context(), audit.Entry{Principal: "red/ann", Name: secret, Kind: "person", Action: "raise " + secret,
		Target: "orchestrations/" + secret, CorrelationID: secret, Reason: secret, Before: secret}))(t)
	testenv.OK(t, w.log.End(t.Context(), e, audit.Failed, secret))
	got := w.all(t, audit.Filter{Target: "orchestrations/" + secret}, 5)
	if len(got) != 1 || strings.Contains(fmt.Sprint(got), secret) || !strings.HasPrefix(got[0].Action, "raise ") {
		t.Errorf("%+v", got)
	}
}

// Lists by every filter, in pages of every size, are what a plain list of all entries gives.
func TestLists(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, tables.NewMemory(), "")
		var all []audit.Entry
		pick := func(what string) string {
			return rapid.SampledFrom([]string{"", what, what + "-b", what + "-B/c", what + "~"}).Draw(rt, what)
		}
		for range rapid.IntRange(0, 30).Draw(rt, "entries") {
			w.at = noon().Add(-time.Duration(rapid.Int64Range(0, int64(200*24*time.Hour)).Draw(rt, "ago"))).Truncate(time.Microsecond)
			if rapid.Bool().Draw(rt, "edge") { // the edge of a month
				w.at = time.Date(2026, time.Month(rapid.IntRange(6, 11).Draw(rt, "month")), 1, 0, 0, 0, -1000*rapid.IntRange(0, 1).Draw(rt, "before"), time.UTC)
			}
			e, err := w.log.Begin(t.Context(), audit.Entry{Principal: pick("p"), Target: pick("t"), Action: "x"})
			if err != nil {
				rt.Fatal(err)
			}
			e.Outcome = audit.Unknown
			if rapid.Bool().Draw(rt, "ends") {
				if err := w.log.End(t.Context(), e, audit.Done, "y"); err != nil {
					rt.Fatal(err)
				}
				e.Outcome, e.After, e.EndedAt = audit.Done, "y", w.at
			}
			all = append(all, e)
		}
		w.at = noon()
		f := audit.Filter{}
		switch rapid.IntRange(0, 2).Draw(rt, "by") {
		case 1:
			f.Target = pick("t")
		case 2:
			f.Principal = pick("p")
		}
		if rapid.Bool().Draw(rt, "from") {
			f.From = noon().Add(-time.Duration(rapid.Int64Range(0, int64(210*24*time.Hour)).Draw(rt, "from")))
		}
		if rapid.Bool().Draw(rt, "to") {
			f.To = noon().Add(-time.Duration(rapid.Int64Range(0, int64(210*24*time.Hour)).Draw(rt, "to")))
		}
		want := slices.DeleteFunc(slices.Clone(all), func(e audit.Entry) bool {
			return f.Target != "" && !strings.EqualFold(f.Target, e.Target) || f.Principal != "" && !strings.EqualFold(f.Principal, e.Principal) ||
				!f.From.IsZero() && e.At.Before(f.From.Truncate(time.Microsecond)) || !f.To.IsZero() && !e.At.Before(f.To.Truncate(time.Microsecond))
		})
		slices.SortFunc(want, func(a, b audit.Entry) int {
			if c := b.At.Compare(a.At); c != 0 {
				return c
			}
			return strings.Compare(a.ID, b.ID)
		})
		got := w.all(rt, f, rapid.IntRange(1, 7).Draw(rt, "size"))
		if diff := cmp.Diff(want, append([]audit.Entry(nil), got...)); diff != "" && len(want)+len(got) > 0 {
			rt.Fatalf("%+v (-want +got):\n%s", f, diff)
		}
	})
}

// A page costs a query, regardless of the number of entries; an entry and its end cost a transaction each.
func TestCosts(t *testing.T) {
	t.Parallel()
	count := 0
	store := faults.Tables(tables.NewMemory(), func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		count++
		return next(ctx)
	})
	w := newWorld(t, store, "")
	for i := range 3000 {
		w.at = w.at.Add(time.Second)
		before := count
		e, err := w.log.Begin(t.Context(), audit.Entry{Principal: fmt.Sprint("p", i%500), Target: fmt.Sprint("t", i%700), Action: "x"})
		if err := errors.Join(err, w.log.End(t.Context(), e, audit.Done, "")); err != nil || count-before != 2 {
			t.Fatalf("%d transactions, %v", count-before, err)
		}
	}
	for _, f := range []audit.Filter{{}, {Target: "t1"}, {Principal: "p1"}} {
		before := count
		f.From = noon().Add(-time.Hour)
		page, err := w.log.List(t.Context(), f, 4, "")
		if err != nil || len(page.Entries) != 4 || count-before != 1 {
			t.Errorf("%+v: %d entries for %d queries, %v", f, len(page.Entries), count-before, err)
		}
	}
}

// A list without bounds queries only the months that can have entries.
func TestCostOfAllTimes(t *testing.T) {
	t.Parallel()
	count := 0
	store := faults.Tables(tables.NewMemory(), func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		count++
		return next(ctx)
	})
	w := newWorld(t, store, "")
	testenv.OK(t, w.log.Record(t.Context(), audit.Entry{Principal: "p", Target: "t", Action: "x", Outcome: audit.Refused}))
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, f := range []audit.Filter{{From: year(1601)}, {To: year(9999)}, {From: year(1601), To: year(9999)}} {
		count = 0
		if found := w.all(t, f, 10); len(found) != 1 || count > 20*12+1 {
			t.Errorf("%v to %v: %d entries for %d queries", f.From, f.To, len(found), count)
		}
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tables.NewMemory(), "")
	for _, place := range []string{"x", "2026-11", "2026-11/t-x", "2026-13/e-", "../e-", "2026-11/e-\xff", "2026-11/e-'/x", "9998-11/e-"} {
		if _, err := w.log.List(t.Context(), audit.Filter{}, 1, place); !errors.Is(err, audit.ErrToken) {
			t.Errorf("%q: %v", place, err)
		}
	}
	for _, limit := range []int{0, -1, audit.MaxLimit + 1} {
		if _, err := w.log.List(t.Context(), audit.Filter{}, limit, ""); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("%d: %v", limit, err)
		}
	}
	if _, err := w.log.List(t.Context(), audit.Filter{Target: "a", Principal: "b"}, 1, ""); !errors.Is(err, tables.ErrInvalid) {
		t.Error(err)
	}
}

// When Begin succeeds despite faults of storage, the entry is in all lists.
func TestBeginUnderFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range faults.Faults() {
		synctest.Test(t, func(t *testing.T) { beginUnder(t, fault) })
	}
}

func beginUnder(t *testing.T, fault faults.Fault) {
	t.Helper()
	inner := tables.NewMemory()
	newWorld(t, inner, "")
	plan := &faults.Plan{At: 1, Fault: fault}
	w := &world{at: noon()}
	w.log = audit.Log{Tables: faults.Tables(inner, plan.Intercept), Now: func() time.Time { return w.at }}
	_, err := w.log.Begin(t.Context(), audit.Entry{Principal: "p", Target: "t", Action: "x"})
	if err != nil && !errors.Is(err, audit.ErrNotRecorded) {
		t.Errorf("%v: %v", fault, err)
	}
	w.log.Tables = inner
	for _, f := range []audit.Filter{{}, {Target: "t"}, {Principal: "p"}} {
		if got := w.all(t, f, 5); err == nil && len(got) != 1 {
			t.Errorf("%v: begun, and %d entries by %+v", fault, len(got), f)
		}
	}
}

// Retention deletes whole months that are over, and nothing else, despite interruptions.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tables.NewMemory(), "")
	for day := range 300 {
		w.at = noon().AddDate(0, 0, -day)
		for range 2 {
			testenv.OK(t, w.log.Record(t.Context(), audit.Entry{Principal: "p", Target: "t", Action: "x", Outcome: audit.Refused}))
		}
	}
	w.at = noon()
	for more, rounds := true, 0; more; rounds++ {
		var err error
		if _, more, err = w.log.Retention(t.Context(), noon().AddDate(0, 0, -90), 70); err != nil || rounds > 1000 {
			t.Fatal(rounds, err)
		}
	}
	august := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC) // the month 90 days ago
	for _, f := range []audit.Filter{{}, {Target: "t"}, {Principal: "p"}} {
		got := w.all(t, f, 50)
		if last := got[len(got)-1].At; len(got) != 2*(31+30+31+21) || last.Before(august) {
			t.Errorf("%d entries are left, the oldest of %v", len(got), last)
		}
	}
	if n, more, err := w.log.Retention(t.Context(), noon().AddDate(0, 0, -90), 70); n != 0 || more || err != nil {
		t.Errorf("%d %v %v", n, more, err)
	}
}
