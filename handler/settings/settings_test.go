package settings

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// emulator is the least that Load takes, with the host.json of the repository.
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
			testenv.Check(t, err)
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
		want []string // one a line of the error
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
		{"comment", "{ // no\n}", none, HostFile{}, "plain JSON"},
		{"count", `{"extensions":{"queues":{"maxDequeueCount":true}}}`, none, HostFile{}, `"true" is not a whole number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			testenv.Check(t, os.WriteFile(filepath.Join(dir, "host.json"), []byte(tt.content), 0o600))
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

func TestBlobRetentionSetting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 180 * day, "168h": 7 * day, "2160h": 90 * day, "167h": 0, "-168h": 0, "30d": 0} {
		got, err := keepSetting(NewReader(emulator.With(blobSetting, text).Lookup), blobSetting, defaultBlobAge, leastBlobAge)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestOrchestrationRetentionSetting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 30 * day, "1h": time.Hour, "2160h": 90 * day, "59m": 0, "-1h": 0, "30d": 0} {
		got, err := keepSetting(NewReader(emulator.With(purgeSetting, text).Lookup), purgeSetting, defaultPurgeAfter, time.Hour)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
