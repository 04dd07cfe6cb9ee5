package handler

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/settings"
)

// Every setting that can never work is refused at the start, or listed after the start, with its name, the reason
// and the remedy, and without any secret.
func TestSettingsThatCanNeverWork(t *testing.T) {
	t.Parallel()
	const secret = "S3cretTail"
	poller := func(more string) string {
		return `{"orders":{"connection":{"setting":"ORDERS_DB"},"source":{"dialect":"postgres","sourceId":"shop","table":"orders","cursor":"id","keys":["id"]},"deliver":{"outbox":{"eventType":"e","tenantId":"t"}}` + more + `}}`
	}
	outboxOf := func(destinations, routes string) string {
		return `{"destinations":{` + destinations + `},"routes":[` + routes + `]}`
	}
	for name, tt := range map[string]struct {
		set []string
		// refused has texts of the error at the start, listed texts of the list.
		refused, listed []string
	}{
		"nothing":                         {},
		"poller without database setting": {set: []string{settings.Pollers, poller("")}, listed: []string{"ROUNDHOUSE_POLLERS: poller orders: the setting ORDERS_DB is not set: set it"}},
		"poller with a good database":     {set: []string{settings.Pollers, poller(""), "ORDERS_DB", "postgres://app:" + secret + "@db/orders"}},
		"poller with a malformed one":     {set: []string{settings.Pollers, poller(""), "ORDERS_DB", "postgres://app:a@" + secret + "@db/orders"}, listed: []string{"poller orders: setting ORDERS_DB:", "%40"}},
		"poller with no server":           {set: []string{settings.Pollers, poller(""), "ORDERS_DB", "user=app password=" + secret}, listed: []string{"ORDERS_DB", "add the host"}},
		"poller that is never due":        {set: []string{settings.Pollers, poller(`,"schedule":"0 0 0 30 2 *"`)}, refused: []string{settings.Pollers, "orders", "no such date"}},
		"poller for no engine":            {set: []string{settings.Pollers, strings.Replace(poller(""), `"outbox":{"eventType":"e","tenantId":"t"}`, `"engine":{"engine":"gone"}`, 1)}, refused: []string{settings.Pollers, "orders", `no engine "gone"`}},
		"poller with an unknown zone":     {set: []string{settings.Pollers, strings.Replace(poller(""), `"keys"`, `"cursorZone":"Mars/Olympus","keys"`, 1)}, listed: []string{"ROUNDHOUSE_POLLERS: poller orders: source orders: cursorZone", "Mars/Olympus", "Europe/Berlin"}},
		"destination without a route":     {set: []string{"ROUNDHOUSE_OUTBOX", outboxOf(`"log":{"log":{}},"away":{"http":{"url":"https://x.example/?sig=`+secret+`","audience":"api://x"}}`, `{"eventType":"*","destination":"log"}`)}, listed: []string{"ROUNDHOUSE_OUTBOX: destinations.away: no route", "audience"}},
		"route without a destination":     {set: []string{"ROUNDHOUSE_OUTBOX", outboxOf(`"log":{"log":{}}`, `{"eventType":"*","destination":"away"}`)}, refused: []string{"ROUNDHOUSE_OUTBOX", `"away" is unknown`}},
		"two routes for one event":        {set: []string{"ROUNDHOUSE_OUTBOX", outboxOf(`"log":{"log":{}}`, `{"eventType":"a","destination":"log"},{"eventType":"a","destination":"log"}`)}, refused: []string{"ROUNDHOUSE_OUTBOX", "already"}},
		"no route":                        {set: []string{"ROUNDHOUSE_OUTBOX", outboxOf(`"log":{"log":{}}`, ``)}, refused: []string{"ROUNDHOUSE_OUTBOX", "no event could leave"}},
		"tenant without an instance":      {set: []string{"ROUNDHOUSE_TENANT_ID", "contoso"}, listed: []string{"ROUNDHOUSE_TENANT_ID: ", "ROUNDHOUSE_INSTANCE_ID"}},
		"tenant with its instance":        {set: []string{"ROUNDHOUSE_TENANT_ID", "contoso", "ROUNDHOUSE_INSTANCE_ID", "i"}},
		"roles without sign-in":           {set: []string{"ROUNDHOUSE_ROLES", `{"administrator":{"appRoles":["keeper"]}}`, "ROUNDHOUSE_HOME_TENANT", "11111111-2222-3333-4444-555555555555"}, listed: []string{"ROUNDHOUSE_ROLES: no caller can sign in"}},
		"roles with sign-in":              {set: []string{"ROUNDHOUSE_ROLES", `{"administrator":{"appRoles":["keeper"]}}`, "ROUNDHOUSE_HOME_TENANT", "11111111-2222-3333-4444-555555555555", "WEBSITE_AUTH_ENABLED", "true"}},
		"a mistyped name":                 {set: []string{"ROUNDHOUSE_LOG_LEVL", secret}, listed: []string{"ROUNDHOUSE_LOG_LEVL: nothing reads it: rename it to ROUNDHOUSE_LOG_LEVEL"}},
		"a mistyped name in small":        {set: []string{"roundhouse_direkt", "1"}, listed: []string{"roundhouse_direkt: nothing reads it: rename it to ROUNDHOUSE_DIRECT"}},
		"a name of another program":       {set: []string{"ROUNDHOUSE_URL", "x", "ROUNDHOUSE_KEY", "x", "ROUNDHOUSE_ENVIRONMENT", "x", "ROUNDHOUSE_SOMETHING", "x"}},
		"a name in another letter case":   {set: []string{"roundhouse_log_level", "info"}},
		"a limit that is not a duration":  {set: []string{"ROUNDHOUSE_HEALTH_RUN_AGE", "90d"}, refused: []string{"ROUNDHOUSE_HEALTH_RUN_AGE", "2160h"}},
		"several": {set: []string{settings.Pollers, poller(""), "ROUNDHOUSE_TENANT_ID", "contoso", "ROUNDHOUSE_OUTBOXX", "x"},
			listed: []string{"ORDERS_DB", "ROUNDHOUSE_TENANT_ID", "ROUNDHOUSE_OUTBOXX"}},
	} {
		env := emulator.With(tt.set...)
		var log bytes.Buffer
		listed, err := unusableOf(t, env, &log)
		shown := strings.Join(listed, "\n")
		if err != nil {
			shown = err.Error()
		}
		if want := append(tt.refused, tt.listed...); (err != nil) != (tt.refused != nil) || (len(listed) > 0) != (tt.listed != nil) || len(want) == 0 && shown != "" {
			t.Errorf("%s: listed %q, refused %v", name, listed, err)
		} else {
			for _, text := range want {
				if !strings.Contains(shown, text) {
					t.Errorf("%s: no %q in %s", name, text, shown)
				}
			}
		}
		if strings.Contains(shown+log.String(), secret) {
			t.Errorf("%s: the secret is shown: %s %s", name, shown, log.String())
		}
		if got := strings.Count(log.String(), "setting can never work"); got != len(listed) {
			t.Errorf("%s: %d warnings for %d settings", name, got, len(listed))
		}
	}
}

// unusableOf starts an app with an environment and returns its unusable settings, or the error of the start.
func unusableOf(t *testing.T, env map[string]string, out *bytes.Buffer) ([]string, error) {
	t.Helper()
	lookup := func(name string) (string, bool) {
		for key, value := range env {
			if strings.EqualFold(key, name) {
				return value, true
			}
		}
		return "", false
	}
	reader := settings.NewReader(lookup)
	reader.Environment = slices.Sorted(maps.Keys(env))
	s, err := settings.Load(reader)
	if err != nil {
		return nil, err
	}
	a, err := App{}.wire(reader, s, slog.New(slog.NewTextHandler(out, nil)))
	if bad := reader.Err(); bad != nil {
		return nil, bad
	}
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Unusable, nil
}
