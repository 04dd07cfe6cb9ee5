package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

// fillHistory records n entries of four engines, a microsecond apart and oldest first; every hundredth failed.
func fillHistory(t *testing.T, history *History, n int) (engines []string) {
	t.Helper()
	engines = []string{"alerts", "hmac", "spn", "tls"}
	batches := map[string][]Entry{}
	for i := range n {
		entry := rotateEntry()
		entry.Engine = engines[i%len(engines)]
		entry.InstanceID = fmt.Sprintf("instance-%d", i)
		entry.RunStatus = ""
		entry.CreatedAtUtc = noon().Add(time.Duration(i) * time.Microsecond)
		if i%100 == 0 {
			entry.Status = StatusFailed
		}
		if i == 1 || i == n-3 {
			entry.TenantID = "Contoso" // of the engine hmac, one at either end
		}
		batches[entry.Engine] = append(batches[entry.Engine], entry)
	}
	for _, batch := range batches {
		recordEntries(t, history, batch...)
	}
	return engines
}

// A page reads as many rows of a long table as of a short one: at most one page of every engine and status.
func TestListCostsItsPage(t *testing.T) {
	t.Parallel()
	const limit = 20
	filters := map[string]struct {
		filter HistoryFilter
		lanes  int
	}{
		"all":           {HistoryFilter{}, 12},
		"status":        {HistoryFilter{Status: StatusFailed}, 8},
		"open":          {HistoryFilter{Status: StatusFailed, Open: true}, 4},
		"engine":        {HistoryFilter{Engines: []string{"hmac"}}, 3},
		"engine status": {HistoryFilter{Engines: []string{"alerts"}, Status: StatusFailed}, 2},
		"tenant":        {HistoryFilter{TenantID: "contoso"}, 12},
		"tenant status": {HistoryFilter{TenantID: "contoso", Status: StatusSucceeded, Engines: []string{"hmac"}}, 1},
		"time":          {HistoryFilter{From: noon().Add(10 * time.Microsecond), To: noon().Add(60 * time.Microsecond)}, 12},
	}
	for _, n := range []int{100, 1_000, 10_000} {
		if n > 1_000 && !sample.Keep(t, n) {
			continue
		}
		store, history, _ := newTables(t)
		engines := fillHistory(t, history, n)
		for name, test := range filters {
			t.Run(fmt.Sprintf("%d rows/%s", n, name), func(t *testing.T) {
				f := test.filter
				f.Limit = limit
				if f.Engines == nil {
					f.Engines = engines
				}
				for range 3 {
					store.reset()
					page, err := history.List(t.Context(), f)
					if err != nil {
						t.Fatal(err)
					}
					if store.queries > test.lanes || store.entities > test.lanes*(limit+1) {
						t.Errorf("%d queries and %d entities for one page, want at most %d and %d", store.queries, store.entities, test.lanes, test.lanes*(limit+1))
					}
					if f.Token = page.Token; f.Token == "" {
						break
					}
				}
			})
		}
	}
}

// A filter with few matches makes the store return empty pages; the list does not.
func TestListOfFewMatches(t *testing.T) {
	t.Parallel()
	_, history, _ := newTables(t)
	engines := fillHistory(t, history, 6_000)
	page, err := history.List(t.Context(), HistoryFilter{Engines: engines, InstanceID: "instance-1"})
	if err != nil || len(page.Entries) != 1 || page.Token != "" {
		t.Errorf("%d entries, token %q, %v, want the one entry and no token", len(page.Entries), page.Token, err)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	_, history, letters := newTables(t)
	tests := map[string]HistoryFilter{
		"no engine":         {},
		"empty engine":      {Engines: []string{""}},
		"long engine":       {Engines: []string{strings.Repeat("x", 129)}},
		"unknown status":    {Engines: []string{"hmac"}, Status: "Pending?"},
		"negative limit":    {Engines: []string{"hmac"}, Limit: -1},
		"long page":         {Engines: []string{"hmac"}, Limit: 101},
		"long instance":     {Engines: []string{"hmac"}, InstanceID: strings.Repeat("x", 513)},
		"invalid instance":  {Engines: []string{"hmac"}, InstanceID: "\xff"},
		"time without rows": {Engines: []string{"hmac"}, To: time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := history.List(t.Context(), f); !errors.Is(err, ErrFilter) {
				t.Errorf("history: %v, want ErrFilter", err)
			}
			g := DeadLetterFilter{Engines: f.Engines, Status: DeadLetterStatus(f.Status), InstanceID: f.InstanceID, Limit: f.Limit, From: f.From, To: f.To}
			if _, err := letters.List(t.Context(), g); !errors.Is(err, ErrFilter) {
				t.Errorf("dead letters: %v, want ErrFilter", err)
			}
		})
	}
}

func TestTokenBelongsToItsFilter(t *testing.T) {
	t.Parallel()
	_, history, letters := newTables(t)
	fillHistory(t, history, 40)
	base := HistoryFilter{Engines: []string{"hmac", "tls"}, Limit: 3}
	page, err := history.List(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	base.Token = page.Token
	same := base
	same.Engines, same.Limit = []string{"tls", "hmac", "hmac"}, 7
	if _, err := history.List(t.Context(), same); err != nil {
		t.Errorf("the same filter in other words: %v", err)
	}
	for name, change := range map[string]func(f *HistoryFilter){
		"engines":     func(f *HistoryFilter) { f.Engines = []string{"hmac"} },
		"instance":    func(f *HistoryFilter) { f.InstanceID = "publisher" },
		"status":      func(f *HistoryFilter) { f.Status = StatusFailed },
		"operation":   func(f *HistoryFilter) { f.Operation = "rotate" },
		"correlation": func(f *HistoryFilter) { f.CorrelationID = "run/1" },
		"from":        func(f *HistoryFilter) { f.From = noon() },
		"to":          func(f *HistoryFilter) { f.To = noon() },
		"damage":      func(f *HistoryFilter) { f.Token += "A" },
		"no base64":   func(f *HistoryFilter) { f.Token = "?" },
		"length":      func(f *HistoryFilter) { f.Token = strings.Repeat("A", 4000) },
		"not a token": func(f *HistoryFilter) { f.Token = base64.RawURLEncoding.EncodeToString([]byte(`{"v":1}`)) },
	} {
		f := base
		change(&f)
		if _, err := history.List(t.Context(), f); !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v, want ErrToken", name, err)
		}
	}
	if _, err := letters.List(t.Context(), DeadLetterFilter{Engines: base.Engines, Token: base.Token}); !errors.Is(err, ErrToken) {
		t.Errorf("token of the other table: %v, want ErrToken", err)
	}
}

// A row that moves to another status while a list reads is in two lanes for a moment.
func TestMergeShowsAMovedRowOnce(t *testing.T) {
	t.Parallel()
	full := func(places ...string) *rowStream {
		l := &rowStream{done: true}
		for _, p := range places {
			l.rows = append(l.rows, listedRow{at: position{p, "hmac"}})
		}
		return l
	}
	rows, err := merge(t.Context(), []*rowStream{full("1", "3"), full("2", "3", "4")}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row.at.place)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

// listModel is a written row, for comparison with the lists of both tables.
type listModel struct {
	position
	row                                      string
	instance, status, operation, correlation string
	tenant                                   string
	at                                       time.Time
}

// tenants returns spellings of three tenants, and the platform.
func tenants() []string {
	return []string{"", "contoso", "CONTOSO", "kelvin", "\u212aELVIN", "fabrikam"}
}

// seen reports whether a caller of a tenant sees a row.
func (r listModel) seen(caller string) bool {
	return caller == "" || strings.EqualFold(caller, r.tenant)
}

// expected returns the selected rows, in order.
func expected(rows map[string]listModel, keep func(listModel) bool) []string {
	var kept []listModel
	for _, row := range rows {
		if keep(row) {
			kept = append(kept, row)
		}
	}
	slices.SortFunc(kept, func(a, b listModel) int { return a.compare(b.position) })
	var keys []string
	for _, row := range kept {
		keys = append(keys, row.engine+"/"+row.row)
	}
	return keys
}

// within reports whether a time is in [from, to), where zero is open.
func within(at, from, to time.Time) bool {
	return (from.IsZero() || !at.Before(from)) && (to.IsZero() || at.Before(to))
}

// drawBound draws an end of a filter's time, in any zone: open, at a row, between two, or long before or after all of
// them.
func drawBound(t *rapid.T, name string) time.Time {
	zone := time.FixedZone("", 3600*rapid.IntRange(-1, 1).Draw(t, name+" zone"))
	switch n := rapid.IntRange(-1, 10).Draw(t, name); n {
	case -1:
		return time.Time{}
	case 9:
		return time.Date(1601, 1, 1, 12, 0, 0, 0, zone)
	case 10:
		return time.Date(9999, 12, 31, 0, 0, 0, 0, zone)
	default:
		return noon().Add(time.Duration(n)*time.Microsecond - time.Duration(rapid.IntRange(0, 1).Draw(t, name+" offset"))).In(zone)
	}
}

func drawOne(t *rapid.T, name string, of ...string) string {
	return rapid.SampledFrom(of).Draw(t, name)
}

// drawFilter draws a filter for both tables.
func drawFilter(t *rapid.T, engines []string, statuses ...string) HistoryFilter {
	return HistoryFilter{
		Engines:       rapid.SampledFrom([][]string{engines, {"hmac"}, {"tls", "alerts"}, {"none"}}).Draw(t, "engines"),
		InstanceID:    drawOne(t, "instance filter", "", "", "a"),
		TenantID:      drawOne(t, "caller", tenants()...),
		Status:        Status(drawOne(t, "status filter", append(statuses, "")...)),
		Operation:     drawOne(t, "operation filter", "", "", "notify"),
		CorrelationID: drawOne(t, "correlation filter", append(correlations(), "", "", "", "")...),
		From:          drawBound(t, "from"),
		To:            drawBound(t, "to"),
	}
}

// correlations returns ids that are easily confused.
func correlations() []string {
	return []string{"run", "run-20261121T120000.123456Z", "rün/2", "r"}
}

// selectedBy reports whether a filter selects the row.
func (r listModel) selectedBy(f HistoryFilter) bool {
	return r.seen(f.TenantID) && slices.Contains(f.Engines, r.engine) && within(r.at, f.From, f.To) &&
		(f.InstanceID == "" || f.InstanceID == r.instance) && (f.Status == "" || string(f.Status) == r.status) &&
		(f.Operation == "" || f.Operation == r.operation) && (f.CorrelationID == "" || f.CorrelationID == r.correlation)
}

// walk reads the pages of a list, whose keys list returns, and compares them with the filtered rows. Between two
// pages, newer writes a newer row.
func walk(t *rapid.T, rows map[string]listModel, f HistoryFilter, list func(HistoryFilter) (keys []string, token string, err error), newer func(n int)) {
	want := expected(rows, func(r listModel) bool { return r.selectedBy(f) })
	var got []string
	for n := 0; ; n++ {
		f.Limit = rapid.IntRange(1, 9).Draw(t, "limit")
		keys, token, err := list(f)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if token != "" && len(keys) != f.Limit {
			t.Fatalf("a page of %d with a token, want %d", len(keys), f.Limit)
		}
		got = append(got, keys...)
		if f.Token = token; f.Token == "" {
			break
		}
		newer(n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("walk (-want +got):\n%s", diff)
	}
}

// The pages of any filter yield the selected rows in order, once each, while newer rows are written.
func TestHistoryWalkEqualsFilteredSort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		store, history, _ := newTables(t)
		engines, rows := []string{"alerts", "hmac", "tls"}, map[string]listModel{}
		for range rapid.IntRange(0, 60).Draw(t, "rows") {
			e := rotateEntry()
			e.Engine, e.CorrelationID = drawOne(t, "engine", engines...), drawOne(t, "correlation id", correlations()...)
			e.CreatedAtUtc = noon().Add(time.Duration(rapid.IntRange(0, 7).Draw(t, "time")) * time.Microsecond)
			e.InstanceID, e.Operation = drawOne(t, "instance", "a", "b"), drawOne(t, "operation", "rotate", "notify")
			e.Status, e.TenantID = Status(drawOne(t, "status", "Succeeded", "Failed")), drawOne(t, "tenant", tenants()...)
			key := rowKey(e.CorrelationID, e.CreatedAtUtc)
			if _, taken := rows[e.Engine+"/"+key]; taken {
				continue
			}
			recordEntries(t, history, e)
			if rapid.Bool().Draw(t, "by an older program") {
				forgetInstance(t, store, DefaultHistoryTable, e.Engine, key)
			}
			rows[e.Engine+"/"+key] = listModel{
				position: position{place(e.CreatedAtUtc, key), e.Engine}, row: key, at: e.CreatedAtUtc,
				instance: e.InstanceID, operation: e.Operation, status: string(e.Status), correlation: e.CorrelationID, tenant: e.TenantID,
			}
		}
		if rapid.Bool().Draw(t, "indexed") {
			if _, _, err := history.Retention(ctx, Retention{Engines: engines[:2]}, noon(), 1); err != nil {
				t.Fatalf("retention: %v", err)
			}
		}
		f := drawFilter(t, engines, "Succeeded", "Failed")
		walk(t, rows, f, func(f HistoryFilter) (keys []string, token string, err error) {
			page, err := history.List(ctx, f)
			for _, e := range page.Entries {
				keys = append(keys, e.Engine+"/"+e.RowKey)
			}
			return keys, page.Token, err
		}, func(n int) {
			newer := rotateEntry()
			newer.TenantID, newer.Engine, newer.CreatedAtUtc = f.TenantID, f.Engines[0], noon().Add(time.Duration(n+1)*time.Second)
			recordEntries(t, history, newer)
		})
	})
}

func TestDeadLetterWalkEqualsFilteredSort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		store, _, letters := newTables(t)
		engines, rows := []string{"alerts", "hmac", "tls"}, map[string]listModel{}
		add := func(d DeadLetter) {
			if created, err := letters.Add(ctx, d); err != nil || !created {
				t.Fatalf("add: created %v, %v", created, err)
			}
		}
		for i := range rapid.IntRange(0, 60).Draw(t, "rows") {
			d := pendingLetter()
			d.Engine, d.CorrelationID = drawOne(t, "engine", engines...), drawOne(t, "correlation id", correlations()...)
			d.MessageID = fmt.Sprintf("%s%d", drawOne(t, "id", "a", "~", "ü", "😀", "\ue000"), i)
			d.LastFailureAtUtc = noon().Add(time.Duration(rapid.IntRange(0, 7).Draw(t, "time")) * time.Microsecond)
			d.InstanceID, d.TenantID = drawOne(t, "instance", "a", "b"), drawOne(t, "tenant", tenants()...)
			d.Status = DeadLetterStatus(drawOne(t, "status", "Pending", "Resolved", "Expired"))
			add(d)
			key := rowKey(d.MessageID, d.InsertedAtUtc)
			if rapid.Bool().Draw(t, "by an older program") {
				forgetInstance(t, store, DefaultDeadLetterTable, d.Engine, key)
			}
			rows[d.Engine+"/"+key] = listModel{
				position: position{place(d.LastFailureAtUtc, key), d.Engine}, row: key, at: d.LastFailureAtUtc,
				instance: d.InstanceID, status: string(d.Status), correlation: d.CorrelationID, tenant: d.TenantID,
			}
		}
		if rapid.Bool().Draw(t, "indexed") {
			if _, _, err := letters.Retention(ctx, Retention{Engines: engines[:2]}, noon(), 1); err != nil {
				t.Fatalf("retention: %v", err)
			}
		}
		f := drawFilter(t, engines, "Pending", "Resolved", "Expired")
		f.Operation = "" // dead letters have none
		walk(t, rows, f, func(f HistoryFilter) (keys []string, token string, err error) {
			page, err := letters.List(ctx, DeadLetterFilter{Engines: f.Engines, InstanceID: f.InstanceID, TenantID: f.TenantID, CorrelationID: f.CorrelationID,
				Status: DeadLetterStatus(f.Status), From: f.From, To: f.To, Limit: f.Limit, Token: f.Token})
			for _, d := range page.DeadLetters {
				keys = append(keys, d.Engine+"/"+d.RowKey)
			}
			return keys, page.Token, err
		}, func(n int) {
			newer := pendingLetter()
			newer.TenantID, newer.Engine, newer.MessageID = f.TenantID, f.Engines[0], fmt.Sprintf("newer%d", n)
			newer.LastFailureAtUtc = noon().Add(time.Duration(n+1) * time.Second)
			add(newer)
		})
	})
}

func FuzzDecodeToken(f *testing.F) {
	engines := []string{"hmac", "tls"}
	mark := fingerprint("x")
	at := position{place(noon(), "row"), "tls"}
	f.Add(encodeToken(mark, at))
	f.Add(encodeToken(mark, position{"1", "tls"}))
	f.Add(encodeToken(mark, position{"a/b", "hmac"}))
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, token string) {
		got, err := decodeToken(token, mark, engines)
		switch {
		case err != nil && !errors.Is(err, ErrToken):
			t.Errorf("%v, want ErrToken", err)
		case err == nil && token != "" && (encodeToken(mark, *got) != token || !slices.Contains(engines, got.engine)):
			t.Errorf("%q was taken as %+v", token, got)
		case err == nil && token != "":
			// Every accepted position makes a query that the store accepts.
			l := listing{store: tables.NewMemory(), table: "engineHistory", limit: 1, after: got}
			if err := l.store.CreateTable(t.Context(), l.table); err != nil {
				t.Fatal(err)
			}
			if err := l.indexStream("hmac", statusPrefix("Failed")).fill(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
