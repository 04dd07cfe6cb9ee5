package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

// The label values in rules are possible values: a misspelt value would change the meaning of a rule.
func TestLabelsOfRules(t *testing.T) {
	t.Parallel()
	rules := readRules(t)
	known := map[string]map[string]bool{"outcome": {}, "result": {}, "job": {job: true}, "queue": {}, "exported_job": {}, "status": {}}
	for _, fate := range engine.Fates() {
		known["outcome"][string(fate)] = true
	}
	for _, outcome := range []outbox.Outcome{outbox.Succeeded, outbox.Failed, outbox.Refused, outbox.Unrouted, outbox.Misconfigured} {
		known["result"][string(outcome)] = true
	}
	label := regexp.MustCompile(`(\w+)="([^"]*)"`)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules, scenario{})
		w.pass(2 * time.Minute)
		for text := range w.series {
			for _, m := range label.FindAllStringSubmatch(text, -1) {
				if known[m[1]] != nil && m[1] != "job" {
					known[m[1]][m[2]] = true
				}
			}
		}
	})
	text := testenv.Must(os.ReadFile(rules.file))(t)
	found := 0
	for _, selector := range regexp.MustCompile(`\w\{([a-z_]+[=!][^}]*)\}`).FindAllStringSubmatch(string(text), -1) {
		for _, m := range regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`).FindAllStringSubmatch(selector[1], -1) {
			for value := range strings.SplitSeq(m[3], "|") {
				if found++; !known[m[1]][value] {
					t.Errorf("no %s is called %q", m[1], value)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d values", found)
	}
}
