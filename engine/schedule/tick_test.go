package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

const daily = "0 11 2 * * *"

// A due slot is sent once, and a new target begins with its next slot.
func TestWhatIsDueIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.until(t, w.scheduler(t, planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a", "b")}), definition("update", plain("0 23 */6 * * *")))), begin.AddDate(0, 0, 1))
	want := []string{"hmac a 11-21 02:11:00", "hmac b 11-21 02:11:00", "update  11-21 06:23:00", "update  11-21 12:23:00", "update  11-21 18:23:00", "update  11-22 00:23:00"}
	if diff := cmp.Diff(want, w.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	for _, s := range w.sent {
		if late := s.At.Sub(s.Slot); late < 0 || late > time.Minute {
			t.Errorf("%s is sent %v after its slot", s.Engine, late)
		}
	}
}

// After downtime, a host sends the latest slot of each target, once.
func TestMissedSlotsAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")}), definition("health", plain("0 */5 * * * *")))
	w.until(t, w.scheduler(t, p), clock(1, 2))
	w.sent, w.now = nil, begin.AddDate(0, 1, 0)
	s := w.scheduler(t, p)
	w.until(t, s, w.now.Add(3*time.Minute))
	if diff := cmp.Diff([]string{"health  12-21 01:00:00", "hmac a 12-20 02:11:00"}, w.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// A failed slot is retried, after pauses that grow up to five minutes, and not only at the next occurrence.
func TestAFailedSendIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, nil, definition("spn", engine.Schedule{Cron: "0 26 2 * * 0", Items: fixed("a", "b")}))
	s := w.scheduler(t, p)
	w.until(t, s, clock(1, 5))
	w.now = time.Date(2026, 11, 22, 2, 26, 10, 0, time.UTC)
	due := w.now
	w.refuse = errors.New("the queue takes nothing: AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0;EndpointSuffix=x")
	var tries []int
	for minute := range 30 {
		if n, err := s.Tick(t.Context()); err != nil {
			tries = append(tries, minute)
			if n.Failed != 2 || !strings.Contains(err.Error(), `schedule spn, item "a", for 2026-11-22T02:26:00Z`) {
				t.Errorf("%+v, %v", n, err)
			}
		}
		if minute == 10 { // another process knows the pause
			s = w.scheduler(t, p)
		}
		w.now = w.now.Add(time.Minute)
	}
	if diff := cmp.Diff([]int{0, 1, 3, 7, 12, 17, 22, 27}, tries); diff != "" {
		t.Errorf("tries (-want +got):\n%s", diff)
	}
	page, err := s.List(t.Context(), schedule.Filter{})
	if err != nil || len(page.Items) != 2 || page.Items[0].Failures != 8 || !strings.Contains(page.Items[0].Error, "takes nothing") ||
		strings.Contains(page.Items[0].Error, "c2VjcmV0") || !page.Items[0].NextAt.Equal(due.Truncate(time.Minute)) {
		t.Errorf("%+v, %v", page.Items, err)
	}
	if late, err := s.Lateness(t.Context()); err != nil || late.Late != 2 || late.Failing != 2 || late.Longest < 25*time.Minute || late.Items[0] != "spn a" {
		t.Errorf("%+v, %v", late, err)
	}
	w.refuse = nil
	w.until(t, s, w.now.Add(10*time.Minute))
	if diff := cmp.Diff([]string{"spn a 11-22 02:26:00", "spn b 11-22 02:26:00"}, w.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if late, err := s.Lateness(t.Context()); err != nil || late.Late != 0 {
		t.Errorf("afterwards: %+v, %v", late, err)
	}
}

// Changed times apply from the next tick on. A pending slot of the previous times is sent, unless the target is
// switched off, and no slot from before the change by the new times.
func TestOtherTimes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away bool // no process ticks until noon
		rule schedule.Rule
		want []string
	}{
		"later":                {rule: schedule.Rule{Cron: "0 0 18 * * *"}, want: []string{"hmac a 11-21 02:11:00", "hmac a 11-21 18:00:00"}},
		"earlier":              {rule: schedule.Rule{Cron: "0 0 10 * * *"}, want: []string{"hmac a 11-21 02:11:00", "hmac a 11-22 10:00:00"}},
		"later, after a miss":  {away: true, rule: schedule.Rule{Cron: "0 0 18 * * *"}, want: []string{"hmac a 11-21 02:11:00", "hmac a 11-21 18:00:00"}},
		"soon, after a miss":   {away: true, rule: schedule.Rule{Cron: "0 5 12 * * *"}, want: []string{"hmac a 11-21 02:11:00", "hmac a 11-21 12:05:00"}},
		"off":                  {rule: schedule.Rule{Cron: schedule.Off}, want: []string{"hmac a 11-21 02:11:00"}},
		"off, after a miss":    {away: true, rule: schedule.Rule{Cron: schedule.Off}},
		"of the item":          {rule: schedule.Rule{Cron: "0 0 20 * * *", Items: map[string]schedule.ItemRule{"a": {Cron: "0 0 19 * * *"}}}, want: []string{"hmac a 11-21 02:11:00", "hmac a 11-21 19:00:00"}},
		"the same, as setting": {rule: schedule.Rule{Cron: daily}, want: []string{"hmac a 11-21 02:11:00", "hmac a 11-22 02:11:00"}},
	} {
		w := newWorld(t)
		d := definition("hmac", engine.Schedule{Name: "schedule", Cron: daily, Items: fixed("a")})
		s := w.scheduler(t, planOf(t, nil, d))
		if w.until(t, s, clock(1, 5)); !tt.away {
			w.until(t, s, clock(12, 0))
		}
		w.now = clock(12, 1)
		w.until(t, w.scheduler(t, planOf(t, schedule.Setting{"hmac": tt.rule}, d)), clock(12, 0).AddDate(0, 0, 1))
		if diff := cmp.Diff(tt.want, w.slots()); diff != "" {
			t.Errorf("%s: sent (-want +got):\n%s", name, diff)
		}
	}
}

// Targets that were off or missing owe nothing when they return.
func TestWhatComesBackIsNotLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	with := func(s schedule.Setting, items ...string) *schedule.Scheduler {
		return w.scheduler(t, planOf(t, s, definition("hmac", engine.Schedule{Cron: daily, Items: fixed(items...)})))
	}
	w.until(t, with(nil, "a", "b"), clock(1, 5))
	w.until(t, with(schedule.Setting{"hmac": {Items: map[string]schedule.ItemRule{"a": {Cron: schedule.Off}}}}, "a"), clock(9, 0))
	w.until(t, with(nil, "a", "b"), clock(12, 0))
	if len(w.sent) != 0 {
		t.Errorf("sent %v", w.slots())
	}
	w.until(t, with(nil, "a", "b"), clock(12, 0).AddDate(0, 0, 1))
	if diff := cmp.Diff([]string{"hmac a 11-22 02:11:00", "hmac b 11-22 02:11:00"}, w.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// During a deployment, a process with the previous setting does not drop the slots of an unknown target.
func TestTwoSettingsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.scheduler(t, planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")})))
	w.until(t, before, clock(1, 50))
	after := w.scheduler(t, planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a", "b")})))
	for ; w.now.Before(clock(2, 20)); w.now = w.now.Add(time.Minute) {
		for _, s := range []*schedule.Scheduler{before, after, before} {
			if _, err := s.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"hmac a 11-21 02:11:00", "hmac b 11-21 02:11:00"}, w.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// The app of the first deployment sends slots that became due during the deployment, and none from before.
func TestTheFirstLook(t *testing.T) {
	t.Parallel()
	for now, want := range map[time.Time]int{clock(2, 10): 0, clock(2, 11): 1, clock(2, 25): 1, clock(2, 27): 0} {
		w := newWorld(t)
		w.now = now
		if n, err := w.scheduler(t, planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")}))).Tick(t.Context()); err != nil || n.Items != want {
			t.Errorf("%v: %+v, %v", now, n, err)
		}
	}
}

// Paged targets are found when the schedule is due; missing ones are not late, and are deleted in time.
func TestPagedItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pages := map[string]engine.ItemPage{}
	var broken error
	items := func(names ...string) (all []engine.Item) {
		for _, name := range names {
			all = append(all, engine.Item{Name: name, Message: message(name)})
		}
		return all
	}
	list := func(_ context.Context, next string) (engine.ItemPage, error) {
		if next == "2" {
			return pages[next], broken
		}
		return pages[next], nil
	}
	s := w.scheduler(t, planOf(t, nil, definition("health", engine.Schedule{Cron: "0 */5 * * * *", Items: engine.PagedItems(list)})))
	w.until(t, s, clock(1, 1))
	pages[""], pages["2"] = engine.ItemPage{Items: items("a", "b"), Next: "2"}, engine.ItemPage{Items: items("b", "c")}
	w.until(t, s, clock(1, 6))
	if diff := cmp.Diff([]string{"health a 11-21 01:05:00", "health b 11-21 01:05:00", "health c 11-21 01:05:00"}, w.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}

	w.sent, broken = nil, errors.New("no second page")
	pages["2"] = engine.ItemPage{}
	w.now = clock(1, 10)
	if n, err := s.Tick(t.Context()); err == nil || n.Items != 2 || !strings.Contains(err.Error(), "items of schedule health: no second page") {
		t.Errorf("%+v, %v: want what was listed", n, err)
	}
	pages[""], broken = engine.ItemPage{Items: items("a")}, nil
	w.until(t, s, clock(1, 22))
	if late, err := s.Lateness(t.Context()); err != nil || late.Late != 0 {
		t.Errorf("%+v, %v", late, err)
	}
	if page, err := s.List(t.Context(), schedule.Filter{}); err != nil || len(page.Items) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	w.now = w.now.AddDate(0, 0, 91)
	w.until(t, s, w.now.Add(time.Minute))
	if rows := w.rows(t); len(rows) != 1 {
		t.Errorf("rows %v", rows)
	}
}

// A clock that was a year ahead does not block a schedule for a year.
func TestAClockThatWasWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")}))
	w.until(t, w.scheduler(t, p), clock(1, 5))
	w.now = begin.AddDate(1, 0, 0)
	w.until(t, w.scheduler(t, p), w.now.Add(time.Minute))
	w.sent, w.now = nil, begin
	w.until(t, w.scheduler(t, p), begin.AddDate(0, 0, 2))
	if diff := cmp.Diff([]string{"hmac a 11-21 02:11:00", "hmac a 11-22 02:11:00"}, w.slots()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// A spread delays each target by its own constant part of it.
func TestASpread(t *testing.T) {
	t.Parallel()
	var names []string
	for n := range 100 {
		names = append(names, fmt.Sprint("item-", n))
	}
	due := func() map[string]time.Duration {
		w := newWorld(t)
		p := planOf(t, schedule.Setting{"hmac": {Spread: "2h"}}, definition("hmac", engine.Schedule{Cron: daily, Items: fixed(names...)}))
		w.until(t, w.scheduler(t, p), begin.Add(4*time.Hour))
		out := map[string]time.Duration{}
		for _, s := range w.sent {
			out[s.InstanceID] = s.At.Sub(s.Slot).Truncate(time.Minute)
			if want := time.Date(2026, 11, 21, 2, 11, 0, 0, time.UTC); !s.Slot.Equal(want) {
				t.Errorf("%s: slot %v, want %v", s.InstanceID, s.Slot, want)
			}
		}
		return out
	}
	first := due()
	if diff := cmp.Diff(first, due()); diff != "" {
		t.Errorf("another app does otherwise: %s", diff)
	}
	halves := [4]int{}
	for _, d := range first {
		if d < 0 || d > 2*time.Hour {
			t.Fatalf("sent after %v", d)
		}
		halves[min(int(d/(30*time.Minute)), 3)]++
	}
	for _, n := range halves {
		if len(first) != 100 || n < 12 {
			t.Errorf("%d items, %v in each half hour", len(first), halves)
		}
	}
}

// Ticks access storage every ten minutes, and to send slots: never otherwise.
func TestTicksCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counted := map[string]int{}
	count := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		counted[c.Operation]++
		return next(ctx)
	}
	p := planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a", "b")}), definition("spn", engine.Schedule{Cron: "0 26 2 * * 0", Items: fixed("c")}))
	s := w.over(t, p, faults.Tables(w.tables, count), w)
	const days, weeks = 28, 4
	w.until(t, s, begin.AddDate(0, 0, days))
	if len(w.sent) != 2*days+weeks {
		t.Errorf("%d messages", len(w.sent))
	}
	looks := days*24*6 + days + weeks
	if counted["Query"] > looks+1 || counted["Apply"] != days+weeks+1 || len(counted) != 2 {
		t.Errorf("%v, want %d queries at most, and %d writes", counted, looks, days+weeks+1)
	}
}

// Two processes that tick at the same time send duplicates, without other effects.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")}))
	w.until(t, w.scheduler(t, p), clock(2, 10))
	other := w.scheduler(t, p)
	raced := false
	race := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" && !raced {
			raced = true
			if n, err := other.Tick(ctx); err != nil || n.Items != 1 {
				t.Errorf("%+v, %v", n, err)
			}
		}
		return next(ctx)
	}
	w.until(t, w.over(t, p, faults.Tables(w.tables, race), w), clock(3, 0))
	if len(w.sent) != 2 || w.sent[0].CorrelationID != w.sent[1].CorrelationID || w.sent[0].CorrelationID == "" {
		t.Errorf("sent %+v", w.sent)
	}
}

// A process with old data does not overwrite rows that another has written meanwhile.
func TestAProcessThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, nil, definition("update", plain("0 * * * * *")))
	w.until(t, w.scheduler(t, p), clock(2, 8))
	raced := false
	behind := w.over(t, p, faults.Tables(w.tables, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" && !raced {
			raced = true
			w.now = w.now.Add(time.Minute)
			if n, err := w.scheduler(t, p).Tick(ctx); err != nil || n.Items != 1 {
				t.Errorf("%+v, %v", n, err)
			}
		}
		return next(ctx)
	}), w)
	if _, err := behind.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(w.sent)
	if n, err := w.scheduler(t, p).Tick(t.Context()); err != nil || len(w.sent) != before {
		t.Errorf("%+v, %v: sent again: %v", n, err, w.slots()[before:])
	}
}

// While no progress can be recorded, sent slots are repeated only after pauses, and no longer once it can.
func TestWhatCannotBeNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")}))
	w.until(t, w.scheduler(t, p), clock(2, 10))
	refuse := true
	plan := &faults.Plan{Refuse: func(c faults.Call) bool { return refuse && c.Operation == "Apply" }}
	s := w.over(t, p, faults.Tables(w.tables, plan.Intercept), w)
	var tries []int
	for minute := range 30 {
		before := len(w.sent)
		if _, err := s.Tick(t.Context()); (err != nil) != (len(w.sent) > before) {
			t.Errorf("minute %d: %v", minute, err)
		}
		if len(w.sent) > before {
			tries = append(tries, minute)
		}
		w.now = w.now.Add(time.Minute)
	}
	if diff := cmp.Diff([]int{0, 1, 3, 7, 12, 17, 22, 27}, tries); diff != "" {
		t.Errorf("tries (-want +got):\n%s", diff)
	}
	refuse = false
	w.until(t, s, w.now.Add(20*time.Minute))
	for _, m := range w.sent {
		if len(w.sent) != len(tries)+1 || m.CorrelationID != w.sent[0].CorrelationID {
			t.Errorf("sent %+v", w.sent)
		}
	}
}

func (w *world) rows(t testing.TB) (keys []string) {
	t.Helper()
	for e, err := range tables.All(t.Context(), w.tables, schedule.Table, tables.Query{Partition: "schedules"}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Row)
	}
	return keys
}

// A wider spread does not repeat a sent slot.
func TestAWiderSpread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a", "b", "c", "d")})
	w.until(t, w.scheduler(t, planOf(t, nil, d)), clock(2, 15))
	w.until(t, w.scheduler(t, planOf(t, schedule.Setting{"hmac": {Spread: "8h"}}, d)), clock(12, 0))
	if len(w.sent) != 4 {
		t.Errorf("sent %v", w.slots())
	}
}
