package main

import (
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/hmac"
)

func TestHMACFrom(t *testing.T) {
	t.Parallel()
	const grace, propagation = "ROUNDHOUSE_HMAC_GRACE", "ROUNDHOUSE_HMAC_PROPAGATION"
	for _, tt := range []struct {
		env  environment
		want hmac.Timing
		bad  string
	}{
		{environment{}, hmac.DefaultTiming(), ""},
		{environment{grace: "48h"}, hmac.Timing{Grace: 48 * time.Hour, Propagation: 5 * time.Minute}, ""},
		{environment{grace: " 0 "}, hmac.Timing{Propagation: 5 * time.Minute}, ""},
		{environment{grace: "1m", propagation: "0s"}, hmac.Timing{Grace: time.Minute}, ""},
		{environment{grace: "5m"}, hmac.Timing{}, "must be shorter"},
		{environment{propagation: "24h"}, hmac.Timing{}, "must be shorter"},
		{environment{grace: "-1h"}, hmac.Timing{}, grace + ` is "-1h"`},
		{environment{grace: "a day", propagation: "1"}, hmac.Timing{}, propagation + ` is "1"`},
	} {
		got, err := hmacFrom(tt.env.lookup)
		if tt.bad != "" {
			if err == nil || !strings.Contains(err.Error(), tt.bad) || !strings.Contains(err.Error(), grace) {
				t.Errorf("%v: %v, want %q in it", tt.env, err, tt.bad)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("%v: %+v, %v; want %+v", tt.env, got, err, tt.want)
		}
	}
	// All settings are read and refused together.
	if s, err := LoadSettings(emulator.with(grace, "1h").lookup); err != nil || s.HMAC.Grace != time.Hour {
		t.Errorf("%+v, %v", s.HMAC, err)
	}
	if _, err := LoadSettings(emulator.with(grace, "x", "ROUNDHOUSE_LOG_LEVEL", "loud").lookup); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%v, want two lines", err)
	}
}
