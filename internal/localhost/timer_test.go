package localhost

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// clockwork is a timer under test with its invocations.
type clockwork struct {
	timer *timer
	fired []string
	begin time.Time
	takes time.Duration
}

// newClockwork makes a timer whose blob is in store; bubbles start at midnight UTC of 1 January 2000.
func newClockwork(t *testing.T, schedule string, store blobs.Store) *clockwork {
	t.Helper()
	s := testenv.Must(parseSchedule(schedule))(t)
	c := &clockwork{begin: time.Now()}
	c.timer = &timer{
		function: "tick", schedule: s, status: newStatusBlob(store, "host-1", "tick"), zone: time.UTC, now: time.Now, log: slog.New(slog.DiscardHandler),
		run: func(_ context.Context, status *timerStatus, pastDue bool) {
			line := fmt.Sprintf("%v", time.Since(c.begin))
			if status != nil {
				line += fmt.Sprintf(" last %s next %s", status.Last.Format(time.TimeOnly), status.Next.Format(time.TimeOnly))
			}
			if pastDue {
				line += " past due"
			}
			c.fired = append(c.fired, line)
			elapse(c.takes)
		},
	}
	return c
}

// runFor runs the timer for a while, then stops it.
func (c *clockwork) runFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	c.timer.listen(ctx)
}

func TestTimerFires(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schedule string
		prepare  func(*clockwork)
		want     []string
	}{
		"cron": {"0 */2 * * * *", nil, []string{"2m0s last 00:00:00 next 00:02:00", "4m0s last 00:02:00 next 00:04:00"}},
		"constant": {"00:01:30", nil, []string{
			"1m30s last 00:00:00 next 00:01:30", "3m0s last 00:01:30 next 00:03:00", "4m30s last 00:03:00 next 00:04:30"}},
		"at startup": {"0 */2 * * * *", func(c *clockwork) { c.timer.runOnStartup = true },
			[]string{"0s last 00:00:00 next 00:02:00", "2m0s last 00:00:00 next 00:02:00", "4m0s last 00:02:00 next 00:04:00"}},
		"without status": {"0 */2 * * * *", func(c *clockwork) { c.timer.status = nil }, []string{"2m0s", "4m0s"}},
		"never two at a time": {"0 * * * * *", func(c *clockwork) { c.takes = 90 * time.Second },
			[]string{"1m0s last 00:00:00 next 00:01:00", "3m0s last 00:01:00 next 00:03:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClockwork(t, test.schedule, nil)
				if test.prepare != nil {
					test.prepare(c)
				}
				c.runFor(5*time.Minute - time.Second)
				testenv.Equal(t, "", test.want, c.fired)
			})
		})
	}
}

func TestTimerRemembersOverRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := blobs.NewMemory()
		first := newClockwork(t, "0 */5 * * * *", store)
		first.runFor(6 * time.Minute)
		testenv.Equal(t, "", []string{"5m0s last 00:00:00 next 00:05:00"}, first.fired)
		data, err := store.Get(t.Context(), "azure-webjobs-hosts", "timers/host-1/Host.Functions.tick/status")
		if err != nil {
			t.Fatal(err)
		}
		want := `{"Last":"2000-01-01T00:05:00+00:00","Next":"2000-01-01T00:10:00+00:00","LastUpdated":"2000-01-01T00:05:00+00:00"}`
		testenv.Equal(t, "", want, string(data))

		inTime := newClockwork(t, "0 */5 * * * *", store)
		inTime.runFor(time.Minute)
		if len(inTime.fired) != 0 {
			t.Errorf("fired %v before it was due", inTime.fired)
		}

		elapse(time.Hour)
		late := newClockwork(t, "0 */5 * * * *", store)
		late.runFor(4 * time.Minute)
		if diff := cmp.Diff([]string{"0s last 00:05:00 next 00:10:00 past due", "3m0s last 01:07:00 next 01:10:00"}, late.fired); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTimerWhoseScheduleChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := blobs.NewMemory()
		newClockwork(t, "0 */5 * * * *", store).runFor(6 * time.Minute)
		elapse(10 * time.Minute) // overdue by the old schedule, not by the new one
		changed := newClockwork(t, "0 30 * * * *", store)
		changed.runFor(5 * time.Minute)
		if len(changed.fired) != 0 {
			t.Errorf("fired %v", changed.fired)
		}
	})
}

func TestTimerWithBrokenStatusStillRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := blobs.NewMemory()
		testenv.OK(t, store.CreateContainer(t.Context(), statusContainer))
		c := newClockwork(t, "0 * * * * *", store)
		testenv.OK(t, store.Put(t.Context(), statusContainer, c.timer.status.name, []byte("{")))
		c.runFor(90 * time.Second)
		if len(c.fired) != 1 {
			t.Errorf("fired %v", c.fired)
		}
	})
}

func TestDateTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"0001-01-01T00:00:00+00:00"`:         `"0001-01-01T00:00:00+00:00"`,
		`"2026-11-21T05:41:00.1234567+01:00"`: `"2026-11-21T05:41:00.1234567+01:00"`,
		`"2026-11-21T05:41:00Z"`:              `"2026-11-21T05:41:00+00:00"`,
	} {
		var d dateTime
		testenv.OK(t, json.Unmarshal([]byte(text), &d))
		if got := string(encode(d)); got != want {
			t.Errorf("%s is written as %s, want %s", text, got, want)
		}
	}
	if err := json.Unmarshal([]byte(`5`), &dateTime{}); err == nil {
		t.Error("a number is taken for a date")
	}
}

// TestFirstStatus: a timer that never ran stores the start of its status.
func TestFirstStatus(t *testing.T) {
	hourly := testenv.Must(parseSchedule("0 0 * * * *"))(t)
	begun := time.Date(2026, 11, 23, 1, 30, 0, 0, time.UTC)
	timer := &timer{schedule: hourly, status: &statusBlob{}, zone: time.UTC, now: func() time.Time { return begun }}
	want := timerStatus{Next: dateTime{begun.Add(30 * time.Minute)}, LastUpdated: dateTime{begun}}
	status, overdue := timer.begin(t.Context())
	if overdue || status == nil || *status != want || *timer.status.memory != want {
		t.Errorf("status %v, kept %v, overdue %v, want %v", status, timer.status.memory, overdue, want)
	}
}
