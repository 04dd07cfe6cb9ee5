package alerts

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
)

// Every alert fires when there is a cause, alone but for those that belong to it, and clears when the cause is gone.
func TestEveryAlertHasItsCause(t *testing.T) {
	t.Parallel()
	rules := readRules(t)
	shown := map[string]bool{}
	for _, s := range scenarios() {
		shown[s.alert] = true
		t.Run(cmp.Or(s.name, s.alert), func(t *testing.T) {
			t.Parallel()
			var r *recording
			if s.process != nil {
				r = record(t, rules.metrics, s.every)
				s.process(t, r)
			} else {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, rules, s)
					s.run(w)
					r = w.recording
				})
			}
			if len(r.ends) != 3 {
				t.Fatalf("%d phases", len(r.ends))
			}
			judge(t, r, rules, s)
		})
	}
	for _, alert := range rules.alerts {
		if !shown[alert] {
			t.Errorf("%s has no scenario", alert)
		}
	}
	for alert := range shown {
		if alert != "" && !slices.Contains(rules.alerts, alert) {
			t.Errorf("there is no alert %s", alert)
		}
	}
}

// scenarios are all of them.
func scenarios() []scenario {
	return slices.Concat(letterScenarios(), outboxScenarios(), orchestrationScenarios(), queueScenarios(), credentialScenarios(), lockScenarios(), processScenarios(), pollerScenarios())
}
