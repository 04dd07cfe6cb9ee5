package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/deploy/check/bicep"
)

// logAlert is a deployed log alert rule.
type logAlert struct {
	name, query, description        string
	frequency, window, looksBack    time.Duration
	clears                          bool
	at                              string
	criteria, dimensions, receivers []any
}

// logAlerts returns the rules of a template.
func logAlerts(t *testing.T, path string) []logAlert {
	t.Helper()
	var rules []logAlert
	for _, r := range of(deployFile(t, path, map[string]any{"alertEmail": "ops@example.com"}), "Microsoft.Insights/scheduledQueryRules") {
		body, _ := r.Body.Get("properties").(*bicep.Object)
		rule := logAlert{name: r.Name()[:max(0, strings.LastIndex(r.Name(), "-"))], description: fmt.Sprint(body.Get("description")), at: fmt.Sprintf("%s:%d", r.File, r.Line)}
		rule.criteria, _ = body.Get("criteria", "allOf").([]any)
		rule.receivers, _ = body.Get("actions", "actionGroups").([]any)
		rule.clears, _ = body.Get("autoMitigate").(bool)
		if len(rule.criteria) == 1 {
			criterion := rule.criteria[0].(*bicep.Object)
			rule.query = fmt.Sprint(criterion.Get("query"))
			rule.dimensions, _ = criterion.Get("dimensions").([]any)
		}
		rule.frequency, rule.window = duration(body.Get("evaluationFrequency")), duration(body.Get("windowSize"))
		rule.looksBack = duration(body.Get("overrideQueryTimeRange"))
		rules = append(rules, rule)
	}
	return rules
}

// duration parses a duration in the subset of ISO 8601 that rules use; 0 means none.
func duration(value any) time.Duration {
	text := strings.ToLower(fmt.Sprint(value))
	if days, ok := strings.CutSuffix(strings.TrimPrefix(text, "p"), "d"); ok {
		d, _ := time.ParseDuration(days + "h")
		return 24 * d
	}
	d, _ := time.ParseDuration(strings.TrimPrefix(text, "pt"))
	return d
}

// logAlertFindings returns the mistakes in the rules of a template.
func logAlertFindings(t *testing.T, path string) []string {
	t.Helper()
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text(t, "docs", "recovery.md"), -1) {
		plain := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors = append(anchors, strings.ReplaceAll(plain, " ", "-"))
	}
	files := queryFiles(t, "alerts")
	var found []string
	for _, r := range logAlerts(t, path) {
		say := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("%s: %s: %s", r.at, r.name, fmt.Sprintf(format, args...)))
		}
		if _, ok := files[r.name]; !ok {
			say("no file has this name")
		}
		delete(files, r.name)
		runbook := regexp.MustCompile(`docs/recovery\.md#([\w-]+)$`).FindStringSubmatch(r.description)
		if runbook == nil || !slices.Contains(anchors, runbook[1]) {
			say("docs/recovery.md has no heading for %q", r.description)
		}
		if len(r.receivers) != 1 || len(r.criteria) != 1 || len(r.dimensions) != 1 {
			say("it has %d receivers, %d criteria and %d dimensions", len(r.receivers), len(r.criteria), len(r.dimensions))
		}
		if r.frequency < 5*time.Minute || r.window < r.frequency || r.looksBack != 0 && r.looksBack < r.window || r.looksBack > 48*time.Hour {
			say("it is evaluated every %v over %v, and looks back %v", r.frequency, r.window, r.looksBack)
		}
		if !r.clears && r.window != r.frequency {
			say("it tells a line more than once: it does not clear, and looks at %v every %v", r.window, r.frequency)
		}
		if wrong := forbidden.FindString(r.query); wrong != "" {
			say("a rule may not have %s", wrong)
		}
		for _, ago := range regexp.MustCompile(`\bago\((\d+m)\)`).FindAllStringSubmatch(r.query, -1) {
			if age, _ := time.ParseDuration(ago[1]); age > max(r.window, r.looksBack) {
				say("%s is before what it looks at", ago[0])
			}
		}
	}
	for name := range files {
		found = append(found, name+": no rule asks this")
	}
	return found
}

// forbidden matches what log alert rules do not accept, according to their documentation: some functions, one column
// name, and ago() with an argument that is not a literal.
var forbidden = regexp.MustCompile(`\b(bag_unpack|pivot|narrow)\b|\bAggregatedValue\b|\bago\([^)]*[^0-9dhms)][^)]*\)`)

// The vault's log goes into the table that the queries read. Without an explicit setting it can go into a table that
// all resources share.
func TestVaultLogHasATable(t *testing.T) {
	t.Parallel()
	audits := 0
	for _, r := range of(deploy(t, nil), "Microsoft.Insights/diagnosticSettings") {
		if !strings.HasPrefix(r.Scope.Type, "Microsoft.KeyVault/") {
			continue
		}
		audits++
		if got := r.Body.Get("properties", "logAnalyticsDestinationType"); got != "Dedicated" {
			t.Errorf("%s:%d: the destination is %v", r.File, r.Line, got)
		}
	}
	if audits != 1 {
		t.Errorf("there are %d settings of vaults", audits)
	}
}
