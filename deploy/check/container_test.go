package check

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/deploy/check/bicep"
)

// A container app listens on its image's port and has probes on open routes. Its termination grace period equals the
// longest duration of an invocation.
func TestContainer(t *testing.T) {
	t.Parallel()
	var host struct{ FunctionTimeout string }
	err := json.Unmarshal([]byte(text(t, "host.json")), &host)
	clock, err2 := time.Parse(time.TimeOnly, host.FunctionTimeout)
	port, err3 := strconv.ParseInt(strings.Join(regexp.MustCompile(`(?m)^EXPOSE (\d+)$`).FindStringSubmatch(text(t, "Dockerfile"))[1:], ""), 10, 64)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, context := range contexts() {
		open := map[string]bool{}
		for _, r := range describe(t, context).Access.Routes {
			open[r.Path] = r.Permission == "public"
		}
		app := of(deploy(t, inContext(context, "container-apps")), "Microsoft.App/containerApps")[0].Body
		if got := app.Get("properties", "configuration", "ingress", "targetPort"); got != port {
			t.Errorf("requests go to port %v, and the image listens at %d", got, port)
		}
		if got := app.Get("properties", "template", "terminationGracePeriodSeconds"); got != int64(clock.Hour()*3600+clock.Minute()*60+clock.Second()) {
			t.Errorf("a replica gets %v s, and an invocation may take %s", got, host.FunctionTimeout)
		}
		container := app.Get("properties", "template", "containers").([]any)[0].(*bicep.Object)
		probes := container.Get("probes").([]any)
		if len(probes) != 2 {
			t.Errorf("%d probes", len(probes))
		}
		for _, probe := range probes {
			path, at := probe.(*bicep.Object).Get("httpGet", "path"), probe.(*bicep.Object).Get("httpGet", "port")
			if name, _ := path.(string); !open[name] || at != port {
				t.Errorf("%s is probed at %v, port %v", context, path, at)
			}
		}
	}
}

// The template creates only the container for the packages in a storage account. The app creates its tables, queues
// and containers, which docs/retention.md lists.
func TestStorage(t *testing.T) {
	t.Parallel()
	page := text(t, "docs", "retention.md")
	for _, plan := range plans() {
		d := deploy(t, inContext("publisher", plan))
		made := of(d, "Microsoft.Storage/storageAccounts/blobServices/containers")
		if len(made) != 1 || made[0].Name() != "packages" {
			t.Errorf("%d containers", len(made))
		}
		for _, r := range made {
			if regexp.MustCompile("(?m)^\\| `" + r.Name() + "` \\|").MatchString(page) {
				t.Errorf("the container %s is the app's own", r.Name())
			}
		}
		for _, kind := range []string{"Microsoft.Storage/storageAccounts/queueServices/queues", "Microsoft.Storage/storageAccounts/tableServices/tables"} {
			if n := len(of(d, kind)); n > 0 {
				t.Errorf("%d %s", n, kind)
			}
		}
	}
}

// The outputs contain every value that the scripts read.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, plan := range plans() {
		d := deploy(t, map[string]any{"plan": plan, "managedApp": true})
		if d.Outputs["AZURE_RESOURCE_GROUP"] != "rg-test" {
			t.Errorf("group %v", d.Outputs["AZURE_RESOURCE_GROUP"])
		}
		apps, _ := d.Outputs["ROUNDHOUSE_APPS"].([]any)
		if len(apps) != 2 {
			t.Fatalf("%d apps", len(apps))
		}
		fields := regexp.MustCompile(`\.\[\] \| \[([^\]]+)\]`)
		for _, script := range []string{"publish", "smoke"} {
			list := fields.FindStringSubmatch(text(t, "deploy", script))
			if list == nil {
				t.Fatalf("%s reads no fields", script)
			}
			for _, field := range regexp.MustCompile(`\.(\w+)`).FindAllStringSubmatch(list[1], -1) {
				for _, app := range apps {
					value, ok := app.(*bicep.Object).Get(field[1]).(string)
					if !ok || value == "" && !(field[1] == "registry" && plan != "container-apps") {
						t.Errorf("%s: %s reads %s, which is %q", plan, script, field[1], value)
					}
				}
			}
		}
	}
}
