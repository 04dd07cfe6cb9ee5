package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// readJSON reads a JSON file and refuses members that into does not have, if strict.
func readJSON(t *testing.T, path string, strict bool, into any) {
	t.Helper()
	file := testenv.Must(os.Open(path))(t)
	defer file.Close()
	decoder := json.NewDecoder(file)
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// host.json has the values that the program relies on.
func TestHostJSON(t *testing.T) {
	t.Parallel()
	var host struct {
		CustomHandler struct {
			Description                 struct{ DefaultExecutablePath string }
			EnableForwardingHTTPRequest bool `json:"enableForwardingHttpRequest"`
			EnableProxyingHTTPRequest   bool `json:"enableProxyingHttpRequest"`
		}
		Extensions struct {
			HTTP   struct{ RoutePrefix string } `json:"http"`
			Queues struct {
				BatchSize, NewBatchThreshold       *int
				MessageEncoding, VisibilityTimeout string
			}
		}
	}
	readJSON(t, filepath.Join(root, "host.json"), false, &host)
	if path := host.CustomHandler.Description.DefaultExecutablePath; path != "handler" {
		t.Errorf("the executable is %q; publishing makes executable only what is called exactly so in the folder", path)
	}
	if !host.CustomHandler.EnableForwardingHTTPRequest || !host.CustomHandler.EnableProxyingHTTPRequest {
		t.Error("HTTP requests are not forwarded and proxied")
	}
	if host.Extensions.HTTP.RoutePrefix != "api" {
		t.Errorf("route prefix %q", host.Extensions.HTTP.RoutePrefix)
	}
	q := host.Extensions.Queues
	if q.BatchSize == nil || q.NewBatchThreshold == nil {
		t.Error("batchSize and newBatchThreshold are not both set: concurrency would depend on the machine's cores")
	}
	if q.MessageEncoding != "none" {
		t.Errorf("messageEncoding %q: the host would move what it cannot decode where no function can read it", q.MessageEncoding)
	}
	if visibility, err := time.Parse("15:04:05", q.VisibilityTimeout); err != nil || visibility.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)) < 30*time.Second {
		t.Errorf("visibilityTimeout %q, %v: attempts would follow each other at once", q.VisibilityTimeout, err)
	}
	s := testenv.Must(settings.Load(settings.NewReader(emulator.Lookup)))(t)
	if s.Host.MaxDequeueCount <= 5 || s.Budget != trigger.DefaultBudget {
		t.Errorf("maxDequeueCount %d, budget %v", s.Host.MaxDequeueCount, s.Budget)
	}
}

func TestLocalSettingsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	var local struct {
		IsEncrypted *bool
		Values      settingstest.Environment
	}
	readJSON(t, filepath.Join(root, "local.settings.json"), true, &local)
	if local.IsEncrypted == nil || *local.IsEncrypted {
		t.Error("IsEncrypted must be false")
	}
	if local.Values["FUNCTIONS_WORKER_RUNTIME"] != "custom" || local.Values["AzureWebJobsStorage"] != "UseDevelopmentStorage=true" {
		t.Errorf("values %v", local.Values)
	}
	for name, value := range local.Values {
		if strings.Contains(strings.ToLower(name+value), "key") {
			t.Errorf("%s looks like a secret", name)
		}
	}
	local.Values["FUNCTIONS_CUSTOMHANDLER_PORT"] = "0"
	if _, err := handler.Describe(handler.App{Engines: engines}, local.Values.Lookup); err == nil || !strings.Contains(err.Error(), "maxDequeueCount") {
		t.Errorf("%v; the host.json is not in this folder, and nothing else is wrong", err)
	}
}
