package marketplace_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/services/marketplace"
)

// Times are read in every documented form, and no other form makes an operation unreadable.
func TestTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2018, 12, 1, 10, 20, 30, 0, time.UTC)
	for form, want := range map[string]time.Time{
		`"2018-12-01T10:20:30"`:                at,
		`"2018-12-01T10:20:30Z"`:               at,
		`"2018-12-01t10:20:30z"`:               at,
		`"2018-12-01T10:20:30.1234567"`:        at.Add(123456 * time.Microsecond),
		`"2018-12-01T10:20:30.1234567890123Z"`: at.Add(123456 * time.Microsecond),
		`"2018-12-01T12:20:30.5+02:00"`:        at.Add(time.Second / 2),
		`"2018-12-01T12:20:30 +02:00"`:         at,
		`" 2018-12-01 10:20:30 "`:              at,
		`"2018-12-01 10:20:30Z"`:               at,
		`"2018-12-01T10:20Z"`:                  at.Truncate(time.Minute),
		`"2018-12-01"`:                         at.Truncate(24 * time.Hour),
		`"0001-01-01T00:00:00"`:                {},
		`"9999-12-31T23:59:59.9999999Z"`:       {},
		`"12/01/2018 10:20:30"`:                {},
		`"/Date(1543659630000)/"`:              {},
		`"2018-13-01T10:20:30Z"`:               {},
		`""`:                                   {},
		`1543659630`:                           {},
		`null`:                                 {},
		`{"time":1}`:                           {},
	} {
		var o marketplace.Operation
		if err := json.Unmarshal([]byte(`{"id":"`+op+`","timeStamp":`+form+`,"quantity":"20","status":"InProgress"}`), &o); err != nil || !o.TimeStamp.Equal(want) {
			t.Errorf("%s: %v, %v", form, o.TimeStamp, err)
		}
		if o.ID != op || o.Quantity != "20" || o.Status != marketplace.OperationInProgress {
			t.Errorf("%s: %+v", form, o)
		}
	}
	var o marketplace.Operation
	if err := json.Unmarshal([]byte(`{"id":"`+op+`"}`), &o); err != nil || !o.TimeStamp.IsZero() {
		t.Errorf("no time: %v, %v", o.TimeStamp, err)
	}
	if err := json.Unmarshal([]byte(`{"id":{}}`), &o); err == nil {
		t.Error("an operation without a readable id is accepted")
	}
}

// For any text, the parsed time is the same after it was written and parsed again.
func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"2018-12-01T10:20:30", "2018-12-01 10:20:30.1+02:00", "", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := marketplace.ParseTime(text)
		if !at.IsZero() && !marketplace.ParseTime(at.Format(time.RFC3339Nano)).Equal(at) {
			t.Errorf("%q: %v", text, at)
		}
	})
}
