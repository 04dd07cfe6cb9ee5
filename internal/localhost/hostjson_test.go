package localhost

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func hostJSON(t *testing.T, text string, env environment) (hostConfig, error) {
	t.Helper()
	root := t.TempDir()
	testenv.OK(t, os.WriteFile(filepath.Join(root, "host.json"), []byte(text), 0o644))
	return loadHostConfig(root, env)
}

// minimal returns a host.json with additional sections.
func minimal(more string) string {
	return `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}` + more + `}`
}

func TestHostJSON(t *testing.T) {
	t.Parallel()
	defaults := hostConfig{
		executable: "handler", initTimeout: 30 * time.Second, functionTimeout: 30 * time.Minute, routePrefix: "api",
		queues: queueOptions{batchSize: 16, newThreshold: 8 * runtime.NumCPU(), maxDequeue: 5, maxPolling: time.Minute, base64: true},
	}
	for name, test := range map[string]struct {
		text   string
		env    environment
		change func(*hostConfig)
	}{
		"defaults":              {minimal(""), nil, func(*hostConfig) {}},
		"development":           {minimal(""), environment{developmentSetting: "development"}, func(c *hostConfig) { c.queues.maxPolling = 2 * time.Second }},
		"consumption plan":      {minimal(""), environment{"WEBSITE_SKU": "Dynamic"}, func(c *hostConfig) { c.queues.newThreshold = 8 }},
		"threshold follows":     {minimal(`,"extensions":{"queues":{"batchSize":5}}`), environment{"WEBSITE_SKU": "Dynamic"}, func(c *hostConfig) { c.queues.batchSize, c.queues.newThreshold = 5, 2 }},
		"no limit":              {minimal(`,"functionTimeout":"-1"`), nil, func(c *hostConfig) { c.functionTimeout = 0 }},
		"no prefix":             {minimal(`,"extensions":{"http":{"routePrefix":""}}`), nil, func(c *hostConfig) { c.routePrefix = "" }},
		"names in any case":     {`{"Version":"2.0","CUSTOMHANDLER":{"Description":{"DefaultExecutablePath":"handler"}}}`, nil, func(*hostConfig) {}},
		"override":              {minimal(`,"functionTimeout":"00:01:00"`), environment{"AzureFunctionsJobHost__functionTimeout": "00:02:00", "azurefunctionsjobhost__customHandler__enableProxyingHttpRequest": "True"}, func(c *hostConfig) { c.functionTimeout, c.proxy = 2*time.Minute, true }},
		"override into a list":  {minimal(""), environment{"AzureFunctionsJobHost__customHandler__description__arguments__0": "x"}, func(c *hostConfig) { c.arguments = []string{"x"} }},
		"arguments":             {`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"%DIR%/handler","arguments":["a","--b=%B%","%NONE%","c d"]}}}`, environment{"B": "1", "DIR": "/opt"}, func(c *hostConfig) { c.executable, c.arguments = "/opt/handler", []string{"a", "--b=1", "c", "d"} }},
		"missing path variable": {`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"%DIR%/handler"}}}`, nil, func(c *hostConfig) { c.executable = "%DIR%/handler" }},
		"queues": {minimal(`,"extensions":{"queues":{"batchSize":1,"newBatchThreshold":0,"maxDequeueCount":8,"maxPollingInterval":"00:00:05","visibilityTimeout":"00:00:30","messageEncoding":"None"}}`),
			environment{developmentSetting: "Development"}, func(c *hostConfig) {
				c.queues = queueOptions{batchSize: 1, maxDequeue: 8, maxPolling: 5 * time.Second, retryVisibility: 30 * time.Second}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := testenv.Must(hostJSON(t, test.text, test.env))(t)
			want := defaults
			test.change(&want)
			testenv.Equal(t, "", want, got, cmp.AllowUnexported(hostConfig{}, queueOptions{}), cmpopts.EquateEmpty())
		})
	}
}

func TestHostJSONErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"not JSON":        {`{`, "parse host.json"},
		"version":         {`{"version":"1.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`, `version has to be "2.0"`},
		"executable":      {`{"version":"2.0"}`, "defaultexecutablepath is required"},
		"quotes":          {`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"x","arguments":["\"a\""]}}}`, "quotes are not supported"},
		"custom routes":   {`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"x"},"http":{"routes":[{"route":"a"}]}}}`, "customhandler:http:routes:0:route is not supported"},
		"profile":         {minimal(`,"configurationProfile":"mcp-custom-handler"`), "configurationprofile is not supported"},
		"dynamic":         {minimal(`,"concurrency":{"dynamicConcurrencyEnabled":true}`), "dynamicconcurrencyenabled is not supported"},
		"short time-out":  {minimal(`,"functionTimeout":"00:00:00.5"`), "functiontimeout is out of range"},
		"no time-out":     {minimal(`,"functionTimeout":"soon"`), "not a time span"},
		"batch size":      {minimal(`,"extensions":{"queues":{"batchSize":33}}`), "batchsize has to be a whole number from 1 to 32"},
		"encoding":        {minimal(`,"extensions":{"queues":{"messageEncoding":"utf8"}}`), "messageencoding has to be"},
		"switch":          {`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"x"},"enableForwardingHttpRequest":"perhaps"}}`, "has to be true or false"},
		"several at once": {`{"version":"1.0","functionTimeout":"soon"}`, "version has to be \"2.0\"\nfunctiontimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := hostJSON(t, test.text, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestTimeSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"00:00:30":    30 * time.Second,
		"01:02":       time.Hour + 2*time.Minute,
		"1.00:00:00":  24 * time.Hour,
		"7":           7 * 24 * time.Hour,
		"00:00:00.05": 50 * time.Millisecond,
		"-00:00:01":   -time.Second,
	} {
		if got, err := parseTimeSpan(text); err != nil || got != want {
			t.Errorf("parseTimeSpan(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "24:00:00", "00:60:00", "00:00:61", "1:2:3:4", "30s", "999999999999", "-1.-1:00"} {
		if got, err := parseTimeSpan(text); err == nil {
			t.Errorf("parseTimeSpan(%q) = %v, want an error", text, got)
		}
	}
}

func TestEnvironmentLayers(t *testing.T) {
	t.Parallel()
	env := newEnvironment([]string{"B=base", "C=base", "=x"}, map[string]string{"A": "local", "B": "local", "C": "local"}, []string{"C=extra=1", "D="})
	want := []string{"A=local", "B=base", "C=extra=1", "D="}
	testenv.Equal(t, "", want, env.list())
	if got, err := env.resolve("x-%A%-%C%"); err != nil || got != "x-local-extra=1" {
		t.Errorf("resolve: %q, %v", got, err)
	}
	if _, err := env.resolve("%NO% %NONE%"); err == nil || !strings.Contains(err.Error(), "%NO%, %NONE%") {
		t.Errorf("resolve: error %v does not name the settings", err)
	}
}

func TestLocalSettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want map[string]string
		err  string
	}{
		"values":                {`{"IsEncrypted":false,"Values":{"A":"1"},"ConnectionStrings":{"Db":"x"}}`, map[string]string{"A": "1", "ConnectionStrings:Db": "x"}, ""},
		"as the tools leave it": {"\ufeff{ // mine\n\"Values\":{\"A\":\"1\",\"Port\":5432,\"On\":true,},}", map[string]string{"A": "1", "Port": "5432", "On": "true"}, ""},
		"encrypted":             {`{"IsEncrypted":true}`, nil, "not supported"},
		"broken":                {`{"Values":{"Key":"hidden`, nil, "not valid JSON"},
		"no text":               {`{"Values":{"Key":{"hidden":1}}}`, nil, "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			testenv.OK(t, os.WriteFile(filepath.Join(root, "local.settings.json"), []byte(test.text), 0o644))
			got, err := localSettings(root)
			testenv.Equal(t, "", test.want, got)
			if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("error %v, want %q and no value", err, test.err)
			}
		})
	}
}
