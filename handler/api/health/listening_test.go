package health

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/queueprobe"
)

// A queue that nobody listens to is a failure, and says what to look at.
func TestListening(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hour := now.Add(-time.Hour)
	for name, tt := range map[string]struct {
		up     time.Duration
		state  queueprobe.State
		err    error
		want   Status
		value  any
		output []string
	}{
		"heard":           {time.Hour, queueprobe.State{HeardAt: now.Add(-90 * time.Second), LookedAt: hour, SentAt: hour}, nil, Pass, 90.0, nil},
		"new":             {0, queueprobe.State{}, nil, Pass, nil, nil},
		"under way":       {time.Hour, queueprobe.State{SentAt: now, LookedAt: now, Missing: 1}, nil, Pass, nil, nil},
		"deaf":            {0, queueprobe.State{Queue: "orchestration-signals", SentAt: hour, LookedAt: now, Missing: 2}, nil, Fail, nil, []string{"orchestration-signals", "2026-11-21T11:00:00Z", "extension bundle", "disabled", "drained"}},
		"nobody looks":    {time.Hour, queueprobe.State{SentAt: hour, LookedAt: hour, HeardAt: hour}, nil, Warn, 3600.0, []string{"orchestration-sweep-timer"}},
		"nobody can tell": {time.Hour, queueprobe.State{}, errors.New("no table"), Fail, nil, []string{"the log has the reason"}},
	} {
		w := newWorld(t)
		clock := now.Add(-tt.up)
		w.config.Now = func() time.Time { return clock }
		w.config.Listening = func(context.Context) (queueprobe.State, error) { return tt.state, tt.err }
		checks := w.checks(t)
		clock = now
		m := checks.Full(t.Context()).Checks[listeningCheck][0]
		if m.Status != tt.want || m.ObservedValue != tt.value || (m.Output == "") != (tt.output == nil) {
			t.Errorf("%s: %+v", name, m)
		}
		for _, want := range tt.output {
			if !strings.Contains(m.Output, want) {
				t.Errorf("%s: %q is not in %q", name, want, m.Output)
			}
		}
	}
}

// Before storage is prepared, nothing is asked, and anybody may know.
func TestUnprepared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	missing := errors.New("account x is away")
	w.config.Prepared = func() error { return missing }
	checks := w.checks(t)
	for name, r := range map[string]Report{"ready": checks.Ready(t.Context()), "full": checks.Full(t.Context())} {
		if r.Status != Fail || !strings.HasPrefix(r.Output, "Storage is not prepared yet.") || strings.Contains(r.Output, "account x") || len(r.Checks) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	missing = nil
	if r := checks.Ready(t.Context()); r.Status == Fail || r.Output != "" {
		t.Errorf("%+v", r)
	}
}
