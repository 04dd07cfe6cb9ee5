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
	"github.com/vibedata/roundhouse/tables"
)

// All errors of a setting are returned.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	items := func(name, cron string) schedule.Rule {
		return schedule.Rule{Items: map[string]schedule.ItemRule{name: {Cron: cron}}}
	}
	engines := []engine.Definition{definition("hmac", engine.Schedule{Name: "schedule", Cron: daily, Items: fixed("a")}), definition("update", plain(daily)),
		definition("orders", engine.Schedule{Name: "open", Cron: daily}, engine.Schedule{Name: "close", Cron: daily})}
	for complaint, s := range map[string]schedule.Setting{
		`"tls": there is no such schedule here: there are hmac, hmac/schedule, orders/close, orders/open, update`: {"tls": {}},
		`"orders": there is no such schedule`:                     {"orders": {}},
		"is the schedule":                                         {"hmac": {}, "hmac/schedule": {}},
		`hmac: cron: "0 3 * * *": an NCRONTAB expression has six`: {"hmac": {Cron: "0 3 * * *"}},
		"due more than once a minute":                             {"update": {Cron: "*/30 * * * * *"}},
		"schedules are looked at once a minute":                   {"update": {Cron: "0,30 * * * * *"}},
		"no such date exists":                                     {"update": {Cron: "0 0 0 30 2 *"}},
		`update: spread "often"`:                                  {"update": {Spread: "often"}},
		`spread "169h"`:                                           {"update": {Spread: "169h"}},
		`spread "-1s"`:                                            {"update": {Spread: "-1s"}},
		"update: items: the schedule has none":                    {"update": items("a", daily)},
		`hmac: items: "b": the schedule has no such item`:         {"hmac": items("b", daily)},
		`hmac: items: "a": give it a cron, or "off"`:              {"hmac": items("a", "")},
		`hmac: items: "a": "often"`:                               {"hmac": items("a", "often")},
	} {
		if _, err := schedule.NewPlan(engines, s); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q is not in: %v", complaint, err)
		}
	}
	_, err := schedule.NewPlan(engines, schedule.Setting{"tls": {}, "update": {Cron: "x", Spread: "y"}})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all at once: %v", err)
	}
	if _, err := schedule.NewPlan(engines, schedule.Setting{"hmac": {Cron: schedule.Off, Spread: "2h", Items: map[string]schedule.ItemRule{"a": {Cron: daily}}}, "orders/close": {}}); err != nil {
		t.Error(err)
	}
}

// A list shows every target with its times and its last result, page by page.
func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := planOf(t, schedule.Setting{"hmac": {Cron: "0 0 3 * * *", Items: map[string]schedule.ItemRule{"b": {Cron: schedule.Off}}}},
		definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a", "b", "/c ~")}), definition("update", plain("0 0 2 * * *")))
	s := w.scheduler(t, p)
	type view struct {
		Name, Cron string
		Source     schedule.Source
		Next, Slot string
	}
	show := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.Format("02 15:04")
	}
	list := func(f schedule.Filter) (all []view) {
		for range 10 {
			page, err := s.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Items {
				all = append(all, view{i.Engine + " " + i.Item, i.Cron, i.Source, show(i.NextAt), show(i.Slot)})
			}
			if f.Token = page.Token; f.Token == "" {
				return all
			}
		}
		t.Fatal("the list does not end")
		return nil
	}
	want := func(slot string) []view {
		return []view{{"hmac /c ~", "0 0 3 * * *", schedule.FromSetting, "21 03:00", ""}, {"hmac a", "0 0 3 * * *", schedule.FromSetting, "21 03:00", ""},
			{"hmac b", "off", schedule.FromItem, "", ""}, {"update ", "0 0 2 * * *", schedule.FromEngine, map[string]string{"": "21 02:00"}[slot], slot}}
	}
	if diff := cmp.Diff(want(""), list(schedule.Filter{Limit: 1})); diff != "" {
		t.Errorf("before the first tick (-want +got):\n%s", diff)
	}
	w.until(t, s, clock(2, 10))
	after := want("21 02:00")
	after[3].Next = "22 02:00"
	for limit := range 5 {
		if diff := cmp.Diff(after, list(schedule.Filter{Limit: limit})); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	if got := list(schedule.Filter{Engine: "hmac", Item: "a"}); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	page, err := s.List(t.Context(), schedule.Filter{Engine: "update"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Sent.CorrelationID != w.sent[0].CorrelationID || page.Items[0].Messages != 1 || !page.Items[0].SentAt.Equal(w.sent[0].At) {
		t.Errorf("%+v, %v; sent %+v", page, err, w.sent)
	}
	if _, err := s.List(t.Context(), schedule.Filter{Token: "x"}); !errors.Is(err, schedule.ErrToken) {
		t.Error(err)
	}
}

// A manual run sends immediately, under ids of its own, and skips no slot. Repeated under one key, it is the same
// work.
func TestRunByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scheduler(t, planOf(t, nil, definition("hmac", engine.Schedule{Name: "schedule", Cron: daily, Items: fixed("a", "b")}), definition("update", plain(daily))))
	w.until(t, s, clock(1, 1))
	run := func(r schedule.Run) []engine.Message {
		made, err := s.Run(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	one := run(schedule.Run{Engine: "hmac", Item: "a", Key: "k1"})
	again, other := run(schedule.Run{Engine: "hmac", Schedule: "schedule", Item: "a", Key: "k1"}), run(schedule.Run{Engine: "hmac", Item: "a", Key: "k2"})
	all := run(schedule.Run{Engine: "hmac", All: true, Key: "k1"})
	if len(one) != 1 || one[0].CorrelationID != again[0].CorrelationID || one[0].CorrelationID == other[0].CorrelationID || len(all) != 2 ||
		all[0].CorrelationID == all[1].CorrelationID || len(w.sent) != 5 || !w.sent[0].Slot.IsZero() || w.sent[0].CorrelationID != one[0].CorrelationID {
		t.Errorf("%+v, %+v, %+v, %+v; sent %+v", one, again, other, all, w.sent)
	}
	if plainly := run(schedule.Run{Engine: "update", Key: "k1"}); len(plainly) != 1 || !w.sent[5].Slot.Equal(w.now.Truncate(time.Minute)) {
		t.Errorf("%+v, sent %+v", plainly, w.sent[5])
	}
	two := engine.Schedule{Cron: daily, Messages: func(context.Context, time.Time) ([]engine.Message, error) { return make([]engine.Message, 2), nil }}
	if made, err := w.scheduler(t, planOf(t, nil, definition("orders", two))).Run(t.Context(), schedule.Run{Engine: "orders"}); err != nil || len(made) != 2 || made[0].CorrelationID == made[1].CorrelationID {
		t.Errorf("%+v, %v", made, err)
	}
	w.sent = nil
	w.until(t, s, clock(2, 30))
	if diff := cmp.Diff([]string{"hmac a 11-21 02:11:00", "hmac b 11-21 02:11:00", "update  11-21 02:11:00"}, w.sorted()); diff != "" {
		t.Errorf("the slots (-want +got):\n%s", diff)
	}
}

func TestRunsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var many []engine.Item
	for n := range schedule.MaxRun + 1 {
		many = append(many, engine.Item{Name: fmt.Sprint(n), Message: message("i")})
	}
	broken := func(context.Context, string) (engine.ItemPage, error) {
		return engine.ItemPage{}, errors.New("no registry")
	}
	s := w.scheduler(t, planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a")}), definition("update", plain(daily)),
		definition("orders", engine.Schedule{Name: "open", Cron: daily}, engine.Schedule{Name: "close", Cron: daily}),
		definition("fleet", engine.Schedule{Cron: daily, Items: engine.FixedItems(many...)}), definition("health", engine.Schedule{Cron: daily, Items: engine.PagedItems(broken)})))
	for r, want := range map[schedule.Run]error{
		{Engine: "tls"}:                         schedule.ErrNotFound,
		{Engine: "hmac"}:                        schedule.ErrSelection,
		{Engine: "hmac", Item: "a", All: true}:  schedule.ErrSelection,
		{Engine: "hmac", Item: "b"}:             schedule.ErrNotFound,
		{Engine: "hmac", Schedule: "x"}:         schedule.ErrNotFound,
		{Engine: "update", Item: "a"}:           schedule.ErrNotFound,
		{Engine: "orders"}:                      schedule.ErrSelection,
		{Engine: "fleet", All: true, Key: "k1"}: schedule.ErrTooMany,
	} {
		if made, err := s.Run(t.Context(), r); !errors.Is(err, want) || made != nil {
			t.Errorf("%+v: %v, %v", r, made, err)
		}
	}
	if _, err := s.Run(t.Context(), schedule.Run{Engine: "health", Item: "a"}); err == nil || !strings.Contains(err.Error(), "no registry") {
		t.Error(err)
	}
	w.refuse = errors.New("no queue")
	if _, err := s.Run(t.Context(), schedule.Run{Engine: "update"}); err == nil || !strings.Contains(err.Error(), "0 of 1 messages were sent") {
		t.Error(err)
	}
	if len(w.sent) != 0 {
		t.Errorf("sent %v", w.slots())
	}
}

// Targets with long names, or with characters that keys cannot hold, have rows of their own.
func TestRowsOfOddItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("/", engine.MaxItemLength-1)
	s := w.scheduler(t, planOf(t, nil, definition("e", engine.Schedule{Cron: daily, Items: fixed(long+"a", long+"b", "~a", "a", "=7Ea", "größe #1?")})))
	w.until(t, s, clock(2, 30))
	if rows := w.rows(t); len(rows) != 6 || len(w.sent) != 6 {
		t.Errorf("%d rows, sent %d", len(rows), len(w.sent))
	}
	if page, err := s.List(t.Context(), schedule.Filter{Item: long + "b"}); err != nil || len(page.Items) != 1 || page.Items[0].Slot.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := schedule.New(schedule.Config{Tables: w.tables}); err == nil {
		t.Error("without a plan there is no error")
	}
	s := w.over(t, planOf(t, nil), tables.NewMemory(), w)
	if n, err := s.Tick(t.Context()); err == nil || n.Items != 0 {
		t.Errorf("without the table: %+v, %v", n, err)
	}
	if err := s.CreateTable(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Tick(t.Context()); err != nil {
		t.Error(err)
	}
}
