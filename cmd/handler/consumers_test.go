package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
)

// Consumers are registered by target, under the engines' names of the targets.
func TestConsumersOfTargets(t *testing.T) {
	t.Parallel()
	r := only(rotationsSetting, `{"hmac":[{"instanceId":"i1","tenantId":"t1","consumers":["gateway","audit"]},{"instanceId":"i2"}],
		"spn":[{"applicationId":"0B1F5A2E-0000-4000-8000-000000000001","consumers":["worker"]}]}`)
	all := rotationsFrom(r)
	for engine, want := range map[string]map[string]consumers.Target{
		hmac.Engine: {"i1": {TenantID: "t1", Names: []string{"gateway", "audit"}}},
		spn.Engine:  {application: {Names: []string{"worker"}}},
	} {
		if diff := cmp.Diff(want, all.targets(engine)); diff != "" || r.Err() != nil {
			t.Errorf("%s: %v (-want +got):\n%s", engine, r.Err(), diff)
		}
	}
	r = only(rotationsSetting, `{"hmac":[{"instanceId":"i1","consumers":["a","a"]}],"spn":[{"applicationId":"0B1F5A2E-0000-4000-8000-000000000001","consumers":["b c"]}]}`)
	rotationsFrom(r)
	for _, says := range []string{`target 1 of hmac: the consumer "a" is listed twice`, `target 1 of spn: the consumer "b c"`} {
		if r.Err() == nil || !strings.Contains(r.Err().Error(), says) {
			t.Errorf("%v does not say %q", r.Err(), says)
		}
	}
}

// A password has to outlast the interval between rotations, the overlap, and possible delays.
func TestLifetime(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, test := range []struct {
		lifetime, removeAfter, patience time.Duration
		good                            bool
	}{
		{16 * day, 7 * day, 7 * day, true}, {15 * day, 7 * day, 7 * day, false}, {16 * day, 7 * day, 8 * day, false}, {16 * day, 8 * day, 7 * day, false},
	} {
		err := checkLifetime(spn.Config{Lifetime: test.lifetime, Overlap: day, RemoveAfter: test.removeAfter}, test.patience, longestGap([]string{spnCron}))
		if (err == nil) != test.good {
			t.Errorf("%+v: %v", test, err)
		}
	}
	for text, want := range map[string]time.Duration{
		"": 7 * day, `{"spn": {"cron": "0 0 0 * * *"}}`: day, `{"spn/schedule": {"cron": "off"}}`: 0, `{"spn": {"cron": "off", "items": {"x": {"cron": "0 0 0 1 * *"}}}}`: 31 * day,
		`{"hmac": {"cron": "0 0 0 1 1 *"}}`: 7 * day, `{"spn": {"cron": "every week"}}`: 0,
	} {
		if got := longestGap(inForce(only("ROUNDHOUSE_SCHEDULES", text), spn.Engine, spnCron)); got != want {
			t.Errorf("%s: rotations are %v apart, want %v", text, got, want)
		}
	}
}
