package alerts

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Every alert fires when its cause occurs, alone except for related alerts, and clears when the cause is gone.
func TestCauses(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	rules, judging := readRules(t), promtool(t)
	for _, s := range scenarios() {
		t.Run(cmp.Or(s.name, s.alert), func(t *testing.T) {
			t.Parallel()
			r := s.play(t, rules)
			if len(r.ends) != 3 {
				t.Fatalf("%d phases", len(r.ends))
			}
			judge(t, judging, r, rules, s)
		})
	}
}

// play runs the scenario.
func (s scenario) play(t *testing.T, rules ruled) (r *recording) {
	t.Helper()
	if s.process != nil {
		r = record(t, rules.metrics, s.every)
		s.process(t, r)
		return r
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules, s)
		s.run(w)
		r = w.recording
	})
	return r
}

// Every alert has a scenario, and every scenario an alert.
func TestEveryAlertHasAScenario(t *testing.T) {
	t.Parallel()
	rules := readRules(t)
	var shown []string
	for _, s := range scenarios() {
		if s.alert != "" && s.name == "" {
			shown = append(shown, s.alert)
		}
		for _, alert := range append(s.also, s.alert) {
			if alert != "" && !slices.Contains(rules.alerts, alert) {
				t.Errorf("%s: there is no alert %s", cmp.Or(s.name, s.alert), alert)
			}
		}
	}
	for _, alert := range rules.alerts {
		if !slices.Contains(shown, alert) {
			t.Errorf("%s has no scenario", alert)
		}
	}
}

// scenarios returns all of them.
func scenarios() []scenario {
	return slices.Concat(letterScenarios(), outboxScenarios(), orchestrationScenarios(), queueScenarios(), credentialScenarios(),
		lockScenarios(), processScenarios(), pollerScenarios())
}
