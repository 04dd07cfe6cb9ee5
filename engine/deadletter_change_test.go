package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

const pendingRow = "msg=231-20261121T110000.000000Z"

func ptr(s string) *string { return &s }

// checkRows checks the consistency of a partition of dead letters: every main row has exactly its index rows, and the
// counts are those of the rows.
func checkRows(t interface {
	fataler
	Context() context.Context
	Errorf(string, ...any)
}, store tables.Store, letters *DeadLetters, engine string,
) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	counts := DeadLetterCounts{Engine: engine}
	ofContoso := DeadLetterCounts{Engine: engine}
	var all []DeadLetter
	several := func(status DeadLetterStatus, all ...*DeadLetterCounts) {
		for _, c := range all {
			*map[DeadLetterStatus]*int64{StatusPending: &c.Pending, StatusResolved: &c.Resolved, StatusExpired: &c.Expired}[status]++
		}
	}
	for e, err := range tables.All(t.Context(), store, DefaultDeadLetterTable, tables.Query{Partition: engine}) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		switch {
		case strings.HasPrefix(e.Row, countPrefix):
			if _, ok := causesOf(e); !ok {
				t.Errorf("the causes in %s are not what it counts: %v", e.Key, e.Properties)
			}
		case strings.HasPrefix(e.Row, indexMark):
			got[e.Row+"="+e.String("Status")] = true
		default:
			l, err := deadLetterOf(e)
			if err != nil {
				t.Fatalf("read: %v", err)
			}
			for _, row := range l.indexRows(e) {
				want[row.Row+"="+row.String("Status")] = true
			}
			all = append(all, l)
			several(l.Status, &counts)
			if strings.EqualFold(l.TenantID, "contoso") {
				several(l.Status, &ofContoso)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("index rows (-want +got):\n%s", diff)
	}
	counted, err := letters.Counts(t.Context(), []string{engine})
	if err != nil || counted[0] != counts {
		t.Errorf("counted %+v, %v, there are %+v", counted, err, counts)
	}
	checkGroups(t, letters, engine, all)
	for caller, want := range map[string]DeadLetterCounts{"": counts, "Contoso": ofContoso} {
		if counted, err := letters.TenantCounts(t.Context(), []string{engine}, caller); err != nil || counted[0] != want {
			t.Errorf("counted %+v for %q, %v, there are %+v", counted, caller, err, want)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	all := []DeadLetterStatus{StatusPending, StatusResolved, StatusExpired}
	for _, from := range all {
		for _, to := range all {
			t.Run(fmt.Sprintf("%s-%s", from, to), func(t *testing.T) {
				t.Parallel()
				store, _, letters := newTables(t)
				letter := pendingLetter()
				letter.Status = from
				addLetter(t, letters, letter)
				got, err := letters.Decide(t.Context(), "hmac", pendingRow, Decision{Status: to, Notes: ptr("token=abc"), By: "me", At: noon()})
				if refused := from == StatusResolved && to == StatusExpired; refused {
					if !errors.Is(err, ErrState) {
						t.Errorf("error %v", err)
					}
				} else if err != nil || got.Status != to || got.ResolutionNotes != "token=[redacted]" || got.ETag == "" {
					t.Errorf("%+v, %v", got, err)
				}
				checkRows(t, store, letters, "hmac")
			})
		}
	}
}

func TestDecideTellsWhoAndWhen(t *testing.T) {
	t.Parallel()
	_, _, letters := newTables(t)
	addLetter(t, letters, pendingLetter())
	at := noon().Add(time.Hour)
	decide := func(status DeadLetterStatus, notes *string) DeadLetter {
		l, err := letters.Decide(t.Context(), "hmac", pendingRow, Decision{Status: status, Notes: notes, By: "me", At: at})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := decide(StatusExpired, ptr("old")); !l.ExpiredAtUtc.Equal(at) || !l.ResolvedAtUtc.IsZero() || l.ResolvedBy != "me" {
		t.Errorf("expired: %+v", l)
	}
	if l := decide(StatusResolved, nil); !l.ResolvedAtUtc.Equal(at) || !l.ExpiredAtUtc.IsZero() || l.ResolutionNotes != "" {
		t.Errorf("resolved: %+v", l)
	}
	if l := decide(StatusPending, nil); !l.ResolvedAtUtc.IsZero() || l.ResolvedBy != "" {
		t.Errorf("reopened: %+v", l)
	}
}

func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	_, _, letters := newTables(t)
	addLetter(t, letters, pendingLetter())
	old, err := letters.Get(t.Context(), "hmac", pendingRow)
	if err != nil {
		t.Fatal(err)
	}
	good := Decision{Status: StatusPending, Notes: ptr("a"), At: noon(), IfMatch: old.ETag}
	if _, err := letters.Decide(t.Context(), "hmac", pendingRow, good); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		row      string
		decision Decision
		want     error
	}{
		"stale":      {pendingRow, Decision{Status: StatusResolved, At: noon(), IfMatch: old.ETag}, ErrChanged},
		"no row":     {"msg-20261121T110000.000000Z", Decision{Status: StatusResolved, At: noon()}, ErrNotFound},
		"index row":  {"~P-1", Decision{Status: StatusResolved, At: noon()}, ErrNotFound},
		"status":     {pendingRow, Decision{Status: "Retrying", At: noon()}, ErrFilter},
		"long notes": {pendingRow, Decision{Status: StatusResolved, Notes: ptr(strings.Repeat("x", MaxResolutionNotes+1)), At: noon()}, ErrFilter},
		"no time":    {pendingRow, Decision{Status: StatusResolved}, ErrFilter},
	} {
		if _, err := letters.Decide(t.Context(), "hmac", test.row, test.decision); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A decision with an ETag whose answer is lost is distinguished from a decision that came too late.
func TestDecideAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied, faults.Unknown, faults.Conflict, faults.Precondition, faults.Throttled} {
		for at := 1; at <= 4; at++ {
			t.Run(fmt.Sprintf("%s-%d", fault, at), func(t *testing.T) {
				t.Parallel()
				store, _, letters := newTables(t)
				addLetter(t, letters, pendingLetter())
				old, err := letters.Get(t.Context(), "hmac", pendingRow)
				if err != nil {
					t.Fatal(err)
				}
				plan := &faults.Plan{At: at, Fault: fault}
				decision := Decision{Status: StatusResolved, Notes: ptr("done"), By: "me", At: noon(), IfMatch: old.ETag}
				_, err = NewDeadLetters(faults.Tables(store, plan.Intercept), "").Decide(t.Context(), "hmac", pendingRow, decision)
				if errors.Is(err, ErrChanged) || errors.Is(err, ErrState) {
					t.Errorf("its own write is taken for another's: %v", err)
				}
				decision.IfMatch = ""
				if l, err := letters.Decide(t.Context(), "hmac", pendingRow, decision); err != nil || l.Status != StatusResolved {
					t.Errorf("%+v, %v", l, err)
				}
				checkRows(t, store, letters, "hmac")
			})
		}
	}
}

func TestCountsAreExactWhateverHappensTogether(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			letter := pendingLetter()
			letter.MessageID = fmt.Sprintf("m%d", i%20)
			if _, err := letters.Add(t.Context(), letter); err != nil {
				t.Error(err)
			}
			row := rowKey(letter.MessageID, letter.InsertedAtUtc)
			for _, status := range []DeadLetterStatus{StatusExpired, StatusPending, StatusResolved} {
				_, err := letters.Decide(t.Context(), "hmac", row, Decision{Status: status, At: noon()})
				if err != nil && !errors.Is(err, ErrState) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	checkRows(t, store, letters, "hmac")
	store.reset()
	if _, err := letters.Counts(t.Context(), []string{"hmac", "tls"}); err != nil || store.queries != 2 || store.entities > 32 {
		t.Errorf("%d queries for %d rows, %v", store.queries, store.entities, err)
	}
}

// After any sequence of decisions, rows, index rows and counts agree, and retention deletes exactly the rows that it
// may.
func TestDeadLettersStayConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store, _, letters := newTables(t)
		now, next := noon(), 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				letter := pendingLetter()
				letter.MessageID, letter.LastFailureAtUtc, letter.TenantID = fmt.Sprint(next), now, drawOne(t, "tenant", tenants()...)
				letter.ErrorMessage = drawOne(t, "error", "no vault", "no key", "no answer")
				letter.FirstFailureAtUtc = now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "attempts")) * time.Minute)
				next++
				if _, err := letters.Add(t.Context(), letter); err != nil {
					t.Fatalf("add: %v", err)
				}
			},
			"decide": func(t *rapid.T) {
				row := rowKey(fmt.Sprint(rapid.IntRange(0, max(0, next-1)).Draw(t, "letter")), pendingLetter().InsertedAtUtc)
				status := rapid.SampledFrom([]DeadLetterStatus{StatusPending, StatusResolved, StatusExpired}).Draw(t, "status")
				_, err := letters.Decide(t.Context(), "hmac", row, Decision{Status: status, At: now})
				if err != nil && !errors.Is(err, ErrState) && !errors.Is(err, ErrNotFound) {
					t.Fatalf("decide: %v", err)
				}
			},
			"wait": func(*rapid.T) { now = now.Add(40 * 24 * time.Hour) },
			"clean": func(t *rapid.T) {
				for more := true; more; {
					var err error
					if _, more, err = letters.Retention(t.Context(), Retention{Engines: []string{"hmac"}}, now, 2); err != nil {
						t.Fatalf("retention: %v", err)
					}
				}
				for e, err := range tables.All(t.Context(), store, DefaultDeadLetterTable, tables.Query{Partition: "hmac", To: indexMark}) {
					l, decodeErr := deadLetterOf(e)
					if at := l.endedAt(); err != nil || decodeErr != nil || !at.IsZero() && at.Before(now.Add(-DefaultKeep)) {
						t.Fatalf("%s is still there, %v", l.RowKey, err)
					}
				}
			},
			"": func(t *rapid.T) { checkRows(t, store, letters, "hmac") },
		})
	})
}

func TestRetentionKeepsWhatItHasTo(t *testing.T) {
	t.Parallel()
	_, history, letters := newTables(t)
	now := noon().Add(DefaultKeep + time.Hour)
	add := func(id string, status DeadLetterStatus, resolved, expired time.Time) {
		letter := pendingLetter()
		letter.MessageID, letter.Status, letter.ResolvedAtUtc, letter.ExpiredAtUtc = id, status, resolved, expired
		addLetter(t, letters, letter)
	}
	old, young := noon().Add(time.Minute), noon().Add(2*time.Hour)
	add("pending", StatusPending, time.Time{}, time.Time{})
	add("resolved-old", StatusResolved, old, time.Time{})
	add("resolved-young", StatusResolved, young, time.Time{})
	add("expired-old", StatusExpired, time.Time{}, old)
	add("expired-young", StatusExpired, time.Time{}, young) // its last failure is before the cutoff
	for i, at := range []time.Time{noon(), old, young} {
		e := rotateEntry()
		e.CorrelationID, e.CreatedAtUtc = fmt.Sprint(i), at
		recordEntries(t, history, e)
	}
	rule := Retention{Engines: []string{"tls", "hmac"}}
	var steps []string
	for more := true; more && len(steps) < 9; {
		var n, m int
		var err, historyErr error
		var moreHistory bool
		n, more, err = letters.Retention(t.Context(), rule, now, 1)
		m, moreHistory, historyErr = history.Retention(t.Context(), rule, now, 1)
		if err := errors.Join(err, historyErr); err != nil {
			t.Fatal(err)
		}
		more = more || moreHistory
		steps = append(steps, fmt.Sprint(n, m))
	}
	if diff := cmp.Diff([]string{"1 1", "1 1", "0 0"}, steps); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	page, err := letters.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}})
	if err != nil || len(page.DeadLetters) != 3 {
		t.Errorf("%d dead letters are left, %v", len(page.DeadLetters), err)
	}
	entries, err := history.List(t.Context(), HistoryFilter{Engines: []string{"hmac"}})
	if err != nil || len(entries.Entries) != 1 {
		t.Errorf("%d entries are left, %v", len(entries.Entries), err)
	}
	for _, bad := range []Retention{{}, {Engines: []string{"hmac"}, Keep: -1}} {
		if _, _, err := letters.Retention(t.Context(), bad, now, 1); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// A page of retention whose transaction lost a race is still deleted.
func TestHistoryRetentionBesideAnother(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	for i := range 3 {
		e := rotateEntry()
		e.CreatedAtUtc, e.RunStatus = noon().Add(time.Duration(i)*time.Second), ""
		recordEntries(t, history, e)
	}
	rows := allRows(t, store, DefaultHistoryTable, "hmac")
	if err := store.Apply(t.Context(), DefaultHistoryTable, tables.Delete(rows[0].Key, "")); err != nil {
		t.Fatal(err)
	}
	n, more, err := history.Retention(t.Context(), Retention{Engines: []string{"hmac"}}, noon().Add(2*DefaultKeep), 100)
	if left := allRows(t, store, DefaultHistoryTable, "hmac"); n != 3 || more || err != nil || len(left) != 0 {
		t.Errorf("removed %d, more %v, %v; left %v", n, more, err, left)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	for i := range 30 {
		letter := pendingLetter()
		letter.MessageID, letter.ErrorMessage = fmt.Sprint(i), fmt.Sprintf("status 503 after %ds", i)
		letter.LastFailureAtUtc = noon().Add(time.Duration(i) * time.Second)
		if i%3 == 0 {
			letter.ErrorMessage, letter.Engine = "no such vault", "tls"
		}
		if i%10 == 0 {
			letter.TenantID = "Contoso"
		}
		addLetter(t, letters, letter)
	}
	store.reset()
	got, err := letters.Groups(t.Context(), DeadLetterFilter{Engines: []string{"hmac", "tls"}, Status: StatusPending})
	if err != nil || !got.Complete || got.Examined != 30 || len(got.Groups) != 2 || store.queries != 4 {
		t.Fatalf("%+v, %v, %d queries", got, err, store.queries)
	}
	first, second := got.Groups[0], got.Groups[1]
	if first.Count != 20 || first.Sample.MessageID != "" && first.Sample.MessageID != "29" || first.LastFailureAtUtc != noon().Add(29*time.Second) ||
		first.FirstFailureAtUtc != noon().Add(-time.Minute) || fmt.Sprint(first.Engines) != "[hmac]" {
		t.Errorf("first group %+v", first)
	}
	if second.Count != 10 || fmt.Sprint(second.Engines) != "[tls]" || second.Sample.ErrorMessage != "no such vault" {
		t.Errorf("second group %+v", second)
	}
	page, err := letters.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac", "tls"}, ErrorSignature: second.ErrorSignature})
	if err != nil || len(page.DeadLetters) != 10 {
		t.Errorf("%d of the group, %v", len(page.DeadLetters), err)
	}
	own, err := letters.Groups(t.Context(), DeadLetterFilter{Engines: []string{"hmac", "tls"}, TenantID: "CONTOSO"})
	if err != nil || own.Examined != 3 || len(own.Groups) != 2 || own.Groups[0].Count != 2 {
		t.Errorf("of a tenant: %+v, %v", own, err)
	}
	if _, err := letters.Groups(t.Context(), DeadLetterFilter{}); !errors.Is(err, ErrFilter) {
		t.Errorf("no engines: %v", err)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	// It reads only index rows.
	for i := range MaxGrouped + 1 {
		e := tables.Entity{Key: tables.Key{Partition: "hmac", Row: fmt.Sprintf("~P-%018d-%032x", i, i)},
			Properties: map[string]any{"Engine": "hmac", "ErrorSignature": fmt.Sprint(i % 7), "Status": "Pending"}}
		if err := store.Store.Apply(t.Context(), DefaultDeadLetterTable, tables.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	count := tables.Entity{Key: tables.Key{Partition: "hmac", Row: "~n-0"}, Properties: map[string]any{"Pending": int64(MaxGrouped + 1)}}
	if err := store.Store.Apply(t.Context(), DefaultDeadLetterTable, tables.Insert(count)); err != nil {
		t.Fatal(err)
	}
	got, err := letters.Groups(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}, Status: StatusPending})
	if err != nil || got.Complete || got.Examined != MaxGrouped || len(got.Groups) != 7 || store.queries > MaxGrouped/1000+2 {
		t.Errorf("%d groups of %d, complete %v, %d queries, %v", len(got.Groups), got.Examined, got.Complete, store.queries, err)
	}
}
