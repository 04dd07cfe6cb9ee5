package settings

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// emulator holds the minimal settings for Load, with the host.json of the repository.
var emulator = settingstest.Emulator("../..")

const day = 24 * time.Hour

func TestLoadSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		env   settingstest.Environment
		check func(s Settings) bool
	}{
		{"defaults", emulator, func(s Settings) bool {
			return s.Port == 0 && s.Storage.Emulator && s.KeyVaultURL == "" && s.Budget == 8*time.Minute &&
				s.LogLevel == slog.LevelInfo && s.Host == HostFile{FunctionTimeout: 10 * time.Minute, MaxDequeueCount: 8}
		}},
		{"port", emulator.With("FUNCTIONS_CUSTOMHANDLER_PORT", " 50123 "), func(s Settings) bool { return s.Port == 50123 }},
		{"vault with the emulator", emulator.With("ROUNDHOUSE_KEY_VAULT_URL", "https://v.vault.azure.net/"), func(s Settings) bool {
			return s.KeyVaultURL == "https://v.vault.azure.net"
		}},
		{"identity", settingstest.Environment{
			"FUNCTIONS_CUSTOMHANDLER_PORT":     "1",
			"AzureWebJobsStorage__accountName": "roundhouse1",
			"AzureWebJobsStorage__credential":  "managedidentity",
			"ROUNDHOUSE_KEY_VAULT_URL":         "https://v.vault.azure.net",
			"ROUNDHOUSE_OUTBOX":                toLog,
		}, func(s Settings) bool {
			return s.Storage.Name == "roundhouse1" && !s.Storage.Emulator
		}},
		{"budget", emulator.With("ROUNDHOUSE_INVOCATION_BUDGET", "9m30s"), func(s Settings) bool { return s.Budget == 9*time.Minute+30*time.Second }},
		{"budget follows a short timeout", emulator.With("AzureFunctionsJobHost__functionTimeout", "00:02:00"), func(s Settings) bool {
			return s.Budget == 90*time.Second && s.Host.FunctionTimeout == 2*time.Minute
		}},
		{"budget without host.json", emulator.With("FUNCTIONS_APP_ROOT_PATH", "testdata/nowhere"), func(s Settings) bool {
			return s.Budget == 4*time.Minute+30*time.Second && s.Host == HostFile{FunctionTimeout: 5 * time.Minute, MaxDequeueCount: 5}
		}},
		{"budget without a timeout", emulator.With("AzureFunctionsJobHost__functionTimeout", "-1"), func(s Settings) bool { return s.Budget == 8*time.Minute }},
		{"long budget without a timeout", emulator.With("AzureFunctionsJobHost__functionTimeout", "-1", "ROUNDHOUSE_INVOCATION_BUDGET", "3h"), func(s Settings) bool {
			return s.Budget == 3*time.Hour
		}},
		{"log level", emulator.With("ROUNDHOUSE_LOG_LEVEL", "debug"), func(s Settings) bool { return s.LogLevel == slog.LevelDebug }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := Load(NewReader(tt.env.Lookup))
			testenv.OK(t, err)
			if !tt.check(s) {
				t.Errorf("settings %+v", s)
			}
		})
	}
}

func TestLoadSettingsRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  settingstest.Environment
		want []string // one line of the error each
	}{
		{"everything", settingstest.Environment{
			"FUNCTIONS_APP_ROOT_PATH":      "../..",
			"ROUNDHOUSE_KEY_VAULT_URL":     "http://v",
			"ROUNDHOUSE_INVOCATION_BUDGET": "9m31s",
			"ROUNDHOUSE_LOG_LEVEL":         "loud",
		}, []string{
			"FUNCTIONS_CUSTOMHANDLER_PORT is not set: the Azure Functions host sets it",
			"AzureWebJobsStorage is missing",
			"ROUNDHOUSE_KEY_VAULT_URL is not a vault's URL",
			"ROUNDHOUSE_INVOCATION_BUDGET is 9m31s, but the host gives up at functionTimeout (10m0s, host.json): set it to 9m30s or less",
			`ROUNDHOUSE_LOG_LEVEL is "loud"`,
		}},
		{"port", emulator.With("FUNCTIONS_CUSTOMHANDLER_PORT", "65536"), []string{`FUNCTIONS_CUSTOMHANDLER_PORT is "65536"`}},
		{"no vault", settingstest.Environment{
			"FUNCTIONS_CUSTOMHANDLER_PORT":     "1",
			"AzureWebJobsStorage__accountName": "roundhouse1",
			"AzureWebJobsStorage__credential":  "managedidentity",
		}, []string{"ROUNDHOUSE_KEY_VAULT_URL is not set", "ROUNDHOUSE_OUTBOX is not set"}},
		{"budget no duration", emulator.With("ROUNDHOUSE_INVOCATION_BUDGET", "480"), []string{`ROUNDHOUSE_INVOCATION_BUDGET is "480"`}},
		{"budget too short", emulator.With("ROUNDHOUSE_INVOCATION_BUDGET", "-5m"), []string{`ROUNDHOUSE_INVOCATION_BUDGET is "-5m"`}},
		{"timeout too short", emulator.With("AzureFunctionsJobHost__functionTimeout", "00:00:30"), []string{"functionTimeout of host.json is 30s"}},
		{"host.json", emulator.With("AzureFunctionsJobHost__functionTimeout", "soon", "AzureFunctionsJobHost__extensions__queues__maxDequeueCount", "0"), []string{
			`functionTimeout of host.json: "soon" is not a time span`,
			`maxDequeueCount of host.json: "0" is not`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(NewReader(tt.env.Lookup))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("%d lines, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d is %q, want %q in it", i, lines[i], want)
				}
			}
		})
	}
}

func TestVaultURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://user:hidden@v", "https://v?sig=hidden", "https://v/hidden", "https://v#hidden", "https://", "hidden"} {
		_, err := Load(NewReader(emulator.With("ROUNDHOUSE_KEY_VAULT_URL", url).Lookup))
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

func TestReadHostFile(t *testing.T) {
	t.Parallel()
	none := settingstest.Environment{}.Lookup
	for _, tt := range []struct {
		name, content string
		lookup        func(string) (string, bool)
		want          HostFile
		err           string
	}{
		{"empty object", `{}`, none, HostFile{5 * time.Minute, 5}, ""},
		{"both", `{"functionTimeout":"01:00:00","extensions":{"queues":{"maxDequeueCount":7}}}`, none, HostFile{time.Hour, 7}, ""},
		{"number as text", `{"extensions":{"queues":{"maxDequeueCount":"7"}}}`, none, HostFile{5 * time.Minute, 7}, ""},
		{"null", `{"functionTimeout":null,"extensions":null}`, none, HostFile{5 * time.Minute, 5}, ""},
		{"overridden", `{"functionTimeout":"01:00:00"}`, settingstest.Environment{"AzureFunctionsJobHost__functionTimeout": "-1"}.Lookup, HostFile{unlimited, 5}, ""},
		{"empty override", `{"functionTimeout":"01:00:00"}`, settingstest.Environment{"AzureFunctionsJobHost__functionTimeout": ""}.Lookup, HostFile{time.Hour, 5}, ""},
		{"comment and commas", "\ufeff{ // for us\n\"functionTimeout\": \"00:05:00\", }", none, HostFile{5 * time.Minute, 5}, ""},
		{"no JSON", "{ no }", none, HostFile{}, "it must be JSON"},
		{"count", `{"extensions":{"queues":{"maxDequeueCount":true}}}`, none, HostFile{}, `"true" is not a whole number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			testenv.OK(t, os.WriteFile(filepath.Join(dir, "host.json"), []byte(tt.content), 0o600))
			got, err := readHostFile(dir, NewReader(tt.lookup))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("%+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
	if _, err := readHostFile("settings_test.go", NewReader(none)); err == nil {
		t.Error("a host.json that cannot be read counts as none")
	}
}

func TestParseTimeSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"00:10:00":         10 * time.Minute,
		"00:10":            10 * time.Minute,
		"1.02:03:04":       26*time.Hour + 3*time.Minute + 4*time.Second,
		"00:00:30.1234567": 30 * time.Second,
		"-1":               unlimited,
		"":                 0,
		"10":               0,
		"24:00:00":         0,
		"00:60:00":         0,
		"00:00:60":         0,
		"00:00:00":         0,
		"-00:10:00":        0,
		"99999.00:00:00":   0,
	} {
		got, err := parseTimeSpan(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestRetentionSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		setting         string
		fallback, least time.Duration
		want            map[string]time.Duration // 0 is refused
	}{
		{blobSetting, defaultBlobAge, leastBlobAge, map[string]time.Duration{"": 180 * day, "168h": 7 * day, "2160h": 90 * day, "167h": 0, "-168h": 0, "30d": 0}},
		{purgeSetting, defaultPurgeAfter, time.Hour, map[string]time.Duration{"": 30 * day, "1h": time.Hour, "2160h": 90 * day, "59m": 0, "-1h": 0, "30d": 0}},
	} {
		for text, want := range tt.want {
			got, err := keepSetting(NewReader(emulator.With(tt.setting, text).Lookup), tt.setting, tt.fallback, tt.least)
			if got != want || (err == nil) != (want != 0) {
				t.Errorf("%s %q: %v, %v, want %v", tt.setting, text, got, err, want)
			}
		}
	}
}

func TestHealthSettings(t *testing.T) {
	t.Parallel()
	h, err := healthFrom(NewReader(func(name string) (string, bool) {
		v, ok := map[string]string{"ROUNDHOUSE_HEALTH_OUTBOX_BACKLOG": " 5, 6 ", "ROUNDHOUSE_HEALTH_OUTBOX_AGE": "-1s,2h",
			"ROUNDHOUSE_HEALTH_OUTBOX_FAILURE_RATIO": "0.1,0.2", "ROUNDHOUSE_HEALTH_STALLED": "3,-1", "ROUNDHOUSE_HEALTH_OUTBOX_DEAD": "4,8", "ROUNDHOUSE_HEALTH_LIST_LAG": "3h,-1s", "ROUNDHOUSE_HEALTH_SCHEDULE_DELAY": "5m,1h", "ROUNDHOUSE_HEALTH_RUN_AGE": "-1s", "ROUNDHOUSE_HEALTH_TIMEOUT": "7s"}[name]
		return v, ok
	}))
	if err != nil || h.Thresholds.Backlog.Degraded != 5 || h.Thresholds.Backlog.Unhealthy != 6 || h.Thresholds.OldestAge.Degraded != -time.Second ||
		h.Thresholds.FailureRatio.Unhealthy != 0.2 || h.Thresholds.Stalled.Degraded != 3 || h.Thresholds.Dead.Unhealthy != 8 || h.Thresholds.Stalled.Unhealthy != -1 ||
		h.Thresholds.ListLag.Degraded != 3*time.Hour || h.Thresholds.ScheduleDelay.Unhealthy != time.Hour || h.Timeout != 7*time.Second || h.RunAge != -time.Second {
		t.Errorf("%+v, %v", h, err)
	}
	for name, value := range map[string]string{"OUTBOX_BACKLOG": "many", "OUTBOX_AGE": "5m", "OUTBOX_FAILURE_RATIO": "0.5,x", "STALLED": "1,x", "OUTBOX_DEAD": "few", "LIST_LAG": "1h", "SCHEDULE_DELAY": "1h", "RUN_AGE": "90d", "TIMEOUT": "0s"} {
		_, err := healthFrom(NewReader(func(asked string) (string, bool) {
			v, ok := map[string]string{healthSetting + name: value}[asked]
			return v, ok
		}))
		if err == nil || !strings.Contains(err.Error(), healthSetting+name) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	if h, err := healthFrom(NewReader(func(string) (string, bool) { return "", false })); err != nil || h != (Health{}) {
		t.Errorf("unset: %+v, %v", h, err)
	}
}

func TestTaskSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retention, review string
		want              Tasks
		complaint         string
	}{
		{want: Tasks{Retention: 90 * day}},
		{retention: "48h", want: Tasks{Retention: 48 * time.Hour}},
		{retention: "90d", complaint: taskSetting},
		{review: "operator, keeper", want: Tasks{Retention: 90 * day, ReviewRoles: []string{"operator", "keeper"}}},
		{review: "operator,,keeper", complaint: reviewSetting},
	} {
		got, err := tasksFrom(NewReader(emulator.With(taskSetting, c.retention).With(reviewSetting, c.review).Lookup))
		if c.complaint == "" && (err != nil || !cmp.Equal(got, c.want)) || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set, host string
		want, err string
	}{
		"nothing":                     {"", "", "", ""},
		"Azure":                       {"", "app.azurewebsites.net", "https://app.azurewebsites.net", ""},
		"a host in development":       {"", "localhost:7071", "http://localhost:7071", ""},
		"an address of one":           {"", "127.0.0.1:7071", "http://127.0.0.1:7071", ""},
		"a domain of one's own":       {"https://app.example.com/", "app.azurewebsites.net", "https://app.example.com", ""},
		"with a port":                 {"https://app.example.com:8443", "", "https://app.example.com:8443", ""},
		"this machine":                {"http://localhost:8080", "", "http://localhost:8080", ""},
		"in clear":                    {"http://app.example.com", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"no address":                  {"app.example.com", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"with a path":                 {"https://app.example.com/api", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"with a query":                {"https://app.example.com?code=hidden", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"with a user":                 {"https://user:hidden@app.example.com", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"a host that is more than it": {"", "app.example.com/x", "", "WEBSITE_HOSTNAME"},
		"a host with a user":          {"", "x@app.example.com", "", "WEBSITE_HOSTNAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Load(NewReader(emulator.With("ROUNDHOUSE_PUBLIC_URL", tt.set, "WEBSITE_HOSTNAME", tt.host).Lookup))
			if tt.err == "" && (err != nil || s.PublicURL != tt.want) {
				t.Errorf("%q, %v, want %q", s.PublicURL, err, tt.want)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
