package trigger

import (
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestDecodeTimer(t *testing.T) {
	t.Parallel()
	const meta = `{"sys":{"MethodName":"tick","UtcNow":"2026-11-21T05:41:00.0841859Z","RandGuid":"764cab12-0000-0000-0000-000000000000"}}`
	fired := time.Date(2026, 11, 21, 5, 41, 0, 84185900, time.UTC)
	next := time.Date(2026, 11, 21, 5, 41, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, timer, meta string
		want              TimerDelivery
	}{
		{
			"first run",
			`{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00+00:00","Next":"2026-11-21T05:41:00+00:00","LastUpdated":"0001-01-01T00:00:00+00:00"},"IsPastDue":false}`,
			meta,
			TimerDelivery{ScheduledAt: next, FiredAt: fired},
		},
		{
			"past due",
			`{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"2026-11-20T05:41:00+00:00","Next":"2026-11-21T05:41:00+00:00","LastUpdated":"2026-11-20T05:41:00+00:00"},"IsPastDue":true}`,
			meta,
			TimerDelivery{ScheduledAt: next, LastAt: next.AddDate(0, 0, -1), FiredAt: fired, IsPastDue: true},
		},
		{"no schedule status", `{"Schedule":{"AdjustForDST":false},"ScheduleStatus":null,"IsPastDue":false}`, meta, TimerDelivery{FiredAt: fired}},
		{"no metadata", `{"ScheduleStatus":null,"IsPastDue":"True"}`, `null`, TimerDelivery{IsPastDue: true}},
		{
			"retry",
			`{"ScheduleStatus":{"Next":"2026-11-21T05:41:00+00:00"},"IsPastDue":false}`,
			`{"sys":"odd","RetryContext":{"RetryCount":0,"MaxRetryCount":2,"Exception":null,"Instance":null,"State":{}}}`,
			TimerDelivery{ScheduledAt: next},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeTimer("myTimer", []byte(`{"Data":{"myTimer":`+tt.timer+`},"Metadata":`+tt.meta+`}`))
			testenv.Check(t, err)
			testenv.Diff(t, tt.want, got, "delivery")
		})
	}
}

func TestDecodeTimerRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, want string }{
		{`{`, "not an invocation in JSON"},
		{`{"Data":{}}`, "no Data.myTimer"},
		{`{"Data":{"myTimer":"soon"}}`, "not the state of a timer"},
	} {
		_, err := decodeTimer("myTimer", []byte(tt.body))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.body, err, tt.want)
		}
	}
}

func FuzzDecodeTimer(f *testing.F) {
	f.Add([]byte(`{"Data":{"myTimer":{"ScheduleStatus":{"Next":"2026-11-21T05:41:00+00:00"},"IsPastDue":true}},"Metadata":{"sys":{"UtcNow":"2026-11-21T05:41:00Z"}}}`))
	f.Add([]byte(`{"Data":{"myTimer":{"ScheduleStatus":null,"IsPastDue":"\"True\""}}}`))
	f.Fuzz(func(t *testing.T, invocation []byte) {
		d, err := decodeTimer("myTimer", invocation)
		if err != nil && d != (TimerDelivery{}) {
			t.Errorf("%+v beside the error %v", d, err)
		}
		for _, at := range []time.Time{d.ScheduledAt, d.LastAt, d.FiredAt} {
			if at.Location() != time.UTC {
				t.Errorf("%v is not in UTC", at)
			}
		}
	})
}
