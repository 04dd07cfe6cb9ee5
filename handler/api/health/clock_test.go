package health

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// datedStore answers with a date of its own.
type datedStore struct {
	tables.Store
	date func() time.Time
	took time.Duration
}

func (s *datedStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	time.Sleep(s.took / 2)
	if at := s.date(); !at.IsZero() {
		tables.RecordResponse(ctx, at, "")
	}
	time.Sleep(s.took / 2)
	return tables.Page{}, nil
}

// A clock that differs from that of storage is told of, until it is set; what a date in whole seconds and a slow answer leave open is no
// difference.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ahead, took time.Duration
		undated     bool
		limits      Limit[time.Duration]
		want        Status
		skewed      bool
	}{
		"the same":          {want: Pass},
		"a little":          {ahead: 4 * time.Second, want: Pass, skewed: true},
		"ahead":             {ahead: 10 * time.Second, want: Warn, skewed: true},
		"behind":            {ahead: -10 * time.Second, want: Warn, skewed: true},
		"a slow answer":     {took: 2 * time.Second, want: Pass},
		"own limit":         {ahead: 10 * time.Second, limits: Limit[time.Duration]{time.Second, 5 * time.Second}, want: Fail, skewed: true},
		"without any limit": {ahead: time.Hour, limits: Limit[time.Duration]{-1, -1}, want: Pass, skewed: true},
		"no date":           {undated: true, ahead: time.Hour, want: Pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(900 * time.Millisecond) // a date has whole seconds
				w := newWorld(t)
				store := &datedStore{w.config.Tables, func() time.Time { return time.Now().Add(test.ahead) }, test.took}
				if test.undated {
					store.date = func() time.Time { return time.Time{} }
				}
				w.config.Tables, w.config.Thresholds.ClockSkew = store, test.limits
				checks := w.checks(t)
				r := checks.Full(t.Context())
				if got := r.Checks[clockCheck]; test.undated != (len(got) == 0) || !test.undated && (got[0].Status != test.want || (got[0].ObservedValue != 0.0) != test.skewed || (got[0].Output == "") != (test.want == Pass)) {
					t.Errorf("%+v", got)
				}
				if ready := checks.Ready(t.Context()); ready.Status != test.want {
					t.Errorf("ready: %+v", ready)
				}
				store.date = time.Now
				time.Sleep(time.Minute)
				if r := checks.Full(t.Context()); r.Status != Pass || r.Checks[clockCheck][0].ObservedValue != 0.0 {
					t.Errorf("when the clock is set: %+v", r)
				}
			})
		})
	}
	w := newWorld(t)
	if _, err := ClockSkew(t.Context(), w.config.Tables, "missing", nil); err == nil || !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("a table that is missing: %v", err)
	}
}
