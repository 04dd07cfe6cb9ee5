package check

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/deploy/check/bicep"
)

// ofHost returns the settings that the Functions host or the platform reads; the program need not know them.
func ofHost() []string {
	return []string{"APPLICATIONINSIGHTS_AUTHENTICATION_STRING", "APPLICATIONINSIGHTS_CONNECTION_STRING", "FUNCTIONS_EXTENSION_VERSION",
		"FUNCTIONS_WORKER_RUNTIME", "WEBSITE_RUN_FROM_PACKAGE", "WEBSITE_RUN_FROM_PACKAGE_BLOB_MI_RESOURCE_ID"}
}

// settingsOf returns the settings of the only app of a deployment.
func settingsOf(t *testing.T, d *bicep.Deployment) map[string]string {
	t.Helper()
	var list []any
	for _, r := range d.Resources {
		switch {
		case r.Existing:
		case strings.HasPrefix(r.Type, "Microsoft.Web/sites@"):
			list, _ = r.Body.Get("properties", "siteConfig", "appSettings").([]any)
		case strings.HasPrefix(r.Type, "Microsoft.App/containerApps@"):
			containers, _ := r.Body.Get("properties", "template", "containers").([]any)
			list, _ = containers[0].(*bicep.Object).Get("env").([]any)
		}
	}
	settings := map[string]string{}
	for _, item := range list {
		setting := item.(*bicep.Object)
		settings[fmt.Sprint(setting.Get("name"))] = fmt.Sprint(setting.Get("value"))
	}
	if len(settings) == 0 {
		t.Fatal("the app has no settings")
	}
	return settings
}

// inContext returns the parameters for one app.
func inContext(context, plan string) map[string]any {
	return map[string]any{"publisher": context == "publisher", "managedApp": context == "managed-app", "plan": plan,
		"updateEndpoint": "https://update.example.com", "instanceId": "acme-1", "instanceTenant": "acme", "payloadKey": "payloads", "signInClientId": clientID}
}

// settingFindings returns the mistakes in the settings of a template.
func settingFindings(t *testing.T, path string) []string {
	t.Helper()
	page := text(t, "docs", "settings.md")
	var found []string
	unused := map[string]bool{}
	for _, name := range ofHost() {
		unused[name] = true
	}
	for _, context := range contexts() {
		m := describe(t, context)
		for _, plan := range plans() {
			set := settingsOf(t, deployFile(t, path, inContext(context, plan)))
			for _, name := range m.Required {
				if set[name] == "" {
					found = append(found, fmt.Sprintf("%s on %s: the program needs %s, which is not set", context, plan, name))
				}
			}
			for name := range set {
				delete(unused, name)
				if !slices.Contains(ofHost(), name) {
					found = append(found, known(m, name, page)...)
				}
			}
			if _, ok := set["FUNCTIONS_WORKER_RUNTIME"]; ok != (plan == "premium") {
				found = append(found, fmt.Sprintf("%s: FUNCTIONS_WORKER_RUNTIME is set: %v; Flex Consumption refuses it, and the image has it", plan, ok))
			}
		}
	}
	for name := range unused {
		found = append(found, "the template does not set "+name)
	}
	return found
}

// known returns the findings about a setting: the program does not read it, or it is not documented on the page.
func known(m manifest, name, page string) []string {
	if storage, suffix, ok := strings.Cut(name, "__"); ok && storage == "AzureWebJobsStorage" {
		if !strings.Contains(page, "__"+suffix+"`") {
			return []string{name + ": docs/settings.md does not have it"}
		}
		return nil // TestProgramTakesSettings shows that the program accepts them
	}
	var found []string
	if !slices.Contains(m.Settings, name) {
		found = append(found, "the program does not read "+name)
	}
	if !strings.Contains(page, "`"+name+"`") {
		found = append(found, name+": docs/settings.md does not have it")
	}
	return found
}

// Additional settings that the user of the template gives reach the app.
func TestMoreSettings(t *testing.T) {
	t.Parallel()
	object := func(key string, value any) *bicep.Object {
		return &bicep.Object{Keys: []string{key}, Values: map[string]any{key: value}, Lines: map[string]int{}}
	}
	params := inContext("publisher", "flex")
	maps.Copy(params, map[string]any{"publisherSettings": object("ROUNDHOUSE_LOG_LEVEL", "debug"), "managedAppSettings": object("ROUNDHOUSE_POLLERS", "{}"),
		"outbox": object("destinations", object("crm", nil)), "signInTenant": "home"})
	set := settingsOf(t, deploy(t, params))
	for name, want := range map[string]string{"ROUNDHOUSE_LOG_LEVEL": "debug", "ROUNDHOUSE_POLLERS": "", "ROUNDHOUSE_CONTEXT": "publisher",
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"crm":null}}`, "ROUNDHOUSE_HOME_TENANT": "home"} {
		if set[name] != want {
			t.Errorf("%s is %q, not %q", name, set[name], want)
		}
	}
}

// starts reports whether the program begins to listen with the given settings. If not, it returns the program's
// output.
func starts(t *testing.T, settings map[string]string) (bool, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), handler(t))
	cmd.Dir = root
	cmd.Env = []string{"FUNCTIONS_CUSTOMHANDLER_PORT=0", "WEBSITE_HOSTNAME=app.azurewebsites.net"}
	for name, value := range settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = input, input
	err = cmd.Start()
	input.Close()
	if err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		fmt.Fprintln(&written, lines.Text())
		if strings.Contains(lines.Text(), `"msg":"listening"`) {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // the exit code is in ProcessState
	// Exit code 2 is for invalid settings. Every other code has another cause, such as unreachable storage.
	return cmd.ProcessState.ExitCode() != 2, written.String()
}

// The program accepts the settings of the template on every plan, and refuses to start without any setting that it
// declares as required.
func TestProgramTakesSettings(t *testing.T) {
	t.Parallel()
	for _, context := range contexts() {
		required := describe(t, context).Required
		for _, plan := range plans() {
			t.Run(context+" on "+plan, func(t *testing.T) {
				t.Parallel()
				set := settingsOf(t, deploy(t, inContext(context, plan)))
				if ok, output := starts(t, set); !ok {
					t.Errorf("the program refuses the settings:\n%s", output)
				}
				for _, name := range required {
					without := maps.Clone(set)
					delete(without, name)
					if ok, output := starts(t, without); ok || !strings.Contains(output, name) {
						t.Errorf("without %s: started %v\n%s", name, ok, output)
					}
				}
			})
		}
	}
}
