package check

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// apps returns azd's values for two apps on a plan.
func apps(plan string) string {
	provider := "Microsoft.Web/sites"
	if plan == "container-apps" {
		provider = "Microsoft.App/containerApps"
	}
	var all []string
	for context, short := range map[string]string{"publisher": "pub", "managed-app": "app"} {
		all = append(all, fmt.Sprintf(`{"context":%q,"name":"%s-1","id":"/subscriptions/s/%s/%s-1","url":"https://%s.example.com","storage":"st%s","registry":"cr%s.azurecr.io","identity":"p"}`,
			context, context, provider, context, context, short, short))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// run runs a script of the folder deploy with stand-in programs. They record their calls and answer according to
// answers, whose keys are beginnings of calls. The answer "FAIL" makes a program exit with 1.
func run(t *testing.T, script, plan string, answers map[string]string) (calls string, err error) {
	t.Helper()
	testenv.Long(t)
	testenv.Programs(t, "bash", "jq")
	bin := t.TempDir()
	log := filepath.Join(bin, "calls")
	stub := "#!/usr/bin/env bash\nset -u\ncall=\"${0##*/} $*\"\n[ -n \"${ROUNDHOUSE_CONTEXT:-}\" ] && echo -n \"($ROUNDHOUSE_CONTEXT) \" >> " + log + "\necho \"$call\" >> " + log + "\ncase $call in\n"
	for begin, answer := range answers {
		stub += fmt.Sprintf("  '%s'*) echo '%s'; [ '%s' != FAIL ] ;;\n", begin, answer, answer)
	}
	stub += "esac\n"
	for _, name := range []string{"azd", "az", "docker", "go", "curl"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "deploy", script))
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ROUNDHOUSE_PLAN=" + plan, "AZURE_ENV_NAME=test", "HOME=" + bin}
	out, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(log)
	if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
		t.Fatal(readErr)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return string(text), err
}

// Each plan has its own way of publishing; each app gets the files of its own profile.
func TestPublish(t *testing.T) {
	t.Parallel()
	for plan, want := range map[string][]string{
		"flex": {"azd deploy --no-prompt\n"},
		"premium": {
			"(publisher) go run ./cmd/roundhouse stage dist --zip bin/publisher.zip\n",
			"(managed-app) go run ./cmd/roundhouse stage dist-managed-app --zip bin/managed-app.zip\n",
			"az storage blob upload --auth-mode login --account-name stpub --container-name packages --name app.zip --file bin/publisher.zip --overwrite",
			"az storage blob upload --auth-mode login --account-name stapp --container-name packages --name app.zip --file bin/managed-app.zip --overwrite",
			"az functionapp restart --ids /subscriptions/s/Microsoft.Web/sites/publisher-1\n",
			"az rest --method post --url https://management.azure.com/subscriptions/s/Microsoft.Web/sites/managed-app-1/syncfunctiontriggers?",
		},
		"container-apps": {
			"(managed-app) go run ./cmd/roundhouse stage dist-managed-app",
			"az acr login --name crpub\n",
			"docker build --build-arg DIST=dist --tag crpub.azurecr.io/roundhouse:",
			"docker build --build-arg DIST=dist-managed-app --tag crapp.azurecr.io/roundhouse:",
			"docker push crapp.azurecr.io/roundhouse:",
			"az containerapp update --resource-group rg-test --name publisher-1 --image crpub.azurecr.io/roundhouse:",
		},
	} {
		calls, err := run(t, "publish", plan, map[string]string{"azd env get-value ROUNDHOUSE_APPS": apps(plan), "azd env get-value AZURE_RESOURCE_GROUP": "rg-test"})
		if err != nil {
			t.Errorf("%s: %v", plan, err)
		}
		for _, call := range want {
			if !strings.Contains(calls, call) {
				t.Errorf("%s: %q is not called:\n%s", plan, call, calls)
			}
		}
	}
}

// A failed publication makes the script fail with a message.
func TestPublishFails(t *testing.T) {
	t.Parallel()
	if _, err := run(t, "publish", "dedicated", map[string]string{"azd env get-value ROUNDHOUSE_APPS": apps("flex")}); err == nil || !strings.Contains(err.Error(), "set it to flex, premium or container-apps") {
		t.Errorf("an unknown plan: %v", err)
	}
	if calls, err := run(t, "publish", "premium", map[string]string{"azd env get-value ROUNDHOUSE_APPS": apps("premium"), "az storage blob upload": "FAIL"}); err == nil || strings.Contains(calls, "az functionapp restart") {
		t.Errorf("an upload that fails: %v\n%s", err, calls)
	}
}

// Provisioning keeps the images that container apps run. It makes no call on other plans or before the resource group
// exists.
func TestKeepImages(t *testing.T) {
	t.Parallel()
	images := "publisher-1\tcrpub.azurecr.io/roundhouse:7\nmanaged-app-1\tcrapp.azurecr.io/roundhouse:8"
	calls, err := run(t, "keep-images", "container-apps", map[string]string{"az group exists --name rg-test": "true", "az containerapp list": images})
	if err != nil || !strings.Contains(calls, "azd env set ROUNDHOUSE_PUBLISHER_IMAGE crpub.azurecr.io/roundhouse:7\n") || !strings.Contains(calls, "azd env set ROUNDHOUSE_MANAGED_APP_IMAGE crapp.azurecr.io/roundhouse:8\n") {
		t.Errorf("%v\n%s", err, calls)
	}
	if calls, err := run(t, "keep-images", "container-apps", map[string]string{"az group exists": "false"}); err != nil || strings.Contains(calls, "azd") {
		t.Errorf("without a group: %v\n%s", err, calls)
	}
	if calls, err := run(t, "keep-images", "flex", nil); err != nil || calls != "" {
		t.Errorf("on flex: %v\n%s", err, calls)
	}
	if _, err := run(t, "keep-images", "container-apps", map[string]string{"az group exists": "true", "az containerapp list": "FAIL"}); err == nil {
		t.Error("images that cannot be read are passed over: the apps would get the empty one")
	}
}

// The script checks every app, even if one of them is broken; a broken app makes the script fail.
func TestSmoke(t *testing.T) {
	t.Parallel()
	calls, err := run(t, "smoke", "flex", map[string]string{"azd env get-value ROUNDHOUSE_APPS": apps("flex"), "curl -fsS --retry 20 --retry-delay 6 --retry-all-errors https://publisher.example.com/api/health/ready": "FAIL"})
	if err == nil {
		t.Error("an app that is not ready is passed over")
	}
	for _, call := range []string{
		"(publisher) go run ./cmd/roundhouse doctor --url https://publisher.example.com --app /subscriptions/s/Microsoft.Web/sites/publisher-1 --main ./cmd/handler\n",
		"(managed-app) go run ./cmd/roundhouse doctor --url https://managed-app.example.com --app /subscriptions/s/Microsoft.Web/sites/managed-app-1 --main ./cmd/handler\n",
	} {
		if !strings.Contains(calls, call) {
			t.Errorf("%q is not called:\n%s", call, calls)
		}
	}
	if calls, err := run(t, "smoke", "container-apps", map[string]string{"azd env get-value ROUNDHOUSE_APPS": apps("container-apps")}); err != nil || strings.Contains(calls, "doctor") || strings.Count(calls, "curl") != 2 {
		t.Errorf("container apps: %v\n%s", err, calls)
	}
}
