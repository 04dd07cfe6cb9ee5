package functionapp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// Needs holds the requirements of a program, as its command manifest prints them (handler.Manifest), and its
// host.json.
type Needs struct {
	Functions map[string]json.RawMessage
	Settings  []string
	Required  []string
	Roles     []Role
	Access    struct{ Routes []Route }
	HostFile  json.RawMessage
}

// Role is a required role of the identity.
type Role struct{ Scope, Name, ID, With string }

// Route is an HTTP entry point.
type Route struct{ Path, Permission, Opens string }

// Level is the result of a check.
type Level int

// The levels.
const (
	Fine Level = iota
	Watch
	Broken
)

// Finding is the result of one check. Fix is the command that fixes it, or the remedy; "" for none.
type Finding struct {
	Check string
	Level Level
	Found string
	Fix   string
}

// examination collects the findings of an app.
type examination struct {
	app      App
	needs    Needs
	findings []Finding
}

// Examine compares an app with a program's requirements. Without needs, it checks the app alone.
func Examine(app App, needs *Needs) []Finding {
	e := examination{app: app}
	e.site()
	e.runtime()
	e.host()
	e.identity()
	if app.Settings.Err != nil {
		e.unread("azure settings", app.Settings.Err, "Website Contributor on the app (its settings are read, and never shown)")
	}
	if needs != nil {
		e.needs = *needs
		if app.Settings.Err == nil {
			e.settings()
			e.roles()
			e.functions()
		}
		e.signIn()
		e.hostFile()
	}
	return e.findings
}

func (e *examination) add(check string, l Level, fix, format string, args ...any) {
	if l == Fine {
		fix = ""
	}
	e.findings = append(e.findings, Finding{check, l, fmt.Sprintf(format, args...), fix})
}

// unread adds a finding for a part that the caller could not read: a refusal is not the app's fault.
func (e *examination) unread(check string, err error, role string) {
	fix := "try again; --verbose shows more"
	if refused, ok := errors.AsType[*Error](err); ok && (refused.Status == http.StatusForbidden || refused.Status == http.StatusUnauthorized) {
		fix = "ask for " + role
	}
	if _, ok := errors.AsType[errElsewhere](err); ok {
		fix = "ask for Reader on it, or look there by hand"
	}
	e.add(check, Watch, fix, "not looked at: %v", err)
}

// here returns the arguments of az that name the app.
func (e *examination) here() string { return "-g " + e.app.Group + " -n " + e.app.Name }

func (e *examination) set(pair string) string {
	return "az functionapp config appsettings set " + e.here() + " --settings " + pair
}

func (e *examination) unset(name string) string {
	return "az functionapp config appsettings delete " + e.here() + " --setting-names " + name
}

func (e *examination) site() {
	if e.app.State == "Running" {
		e.add("azure app", Fine, "", "%s is running", e.app.Name)
	} else {
		e.add("azure app", Broken, "az functionapp start "+e.here(), "%s is %s", e.app.Name, cmp.Or(e.app.State, "in no known state"))
	}
	if !e.app.HTTPSOnly {
		e.add("azure https", Watch, "az functionapp update "+e.here()+" --set httpsOnly=true", "plain http is answered, too: keys can be read on the way")
	}
}

// runtime checks that the plan starts custom handlers.
func (e *examination) runtime() {
	const worker = "FUNCTIONS_WORKER_RUNTIME"
	value, set := e.app.Settings.Is[worker]
	switch {
	case e.app.Flex && e.app.Runtime != "custom":
		e.add("azure runtime", Broken, "az functionapp runtime config set "+e.here()+" --runtime custom --runtime-version 1.0", "the plan runs %q, not custom", e.app.Runtime)
	case e.app.Flex && set:
		e.add("azure runtime", Broken, e.unset(worker), "%s is set, which Flex Consumption refuses", worker)
	case !e.app.Flex && e.app.Settings.Err == nil && value != "custom":
		e.add("azure runtime", Broken, e.set(worker+"=custom"), "%s is not custom", worker)
	case !e.app.Flex && e.app.Settings.Err == nil && !strings.HasPrefix(e.app.Settings.Is["FUNCTIONS_EXTENSION_VERSION"], "~4"):
		e.add("azure runtime", Broken, e.set("FUNCTIONS_EXTENSION_VERSION=~4"), "FUNCTIONS_EXTENSION_VERSION is not ~4")
	default:
		e.add("azure runtime", Fine, "", "custom handlers")
	}
}

func (e *examination) host() {
	status := e.app.Status
	switch {
	case status.Err != nil:
		e.unread("azure host", status.Err, "Reader on the app")
	case status.Is.State != "Running" || len(status.Is.Errors) > 0:
		e.add("azure host", Broken, "az webapp log tail "+e.here(), "the host is %q: %.500s", status.Is.State, strings.Join(status.Is.Errors, "; "))
	default:
		e.add("azure host", Fine, "", "host %s is running", status.Is.Version)
	}
}

// identity checks that the app has an identity for the roles.
func (e *examination) identity() {
	if e.app.Settings.Err != nil {
		return
	}
	if e.app.Principal() != "" {
		e.add("azure identity", Fine, "", "principal %s", e.app.Principal())
		return
	}
	if e.app.Settings.Is[storageSetting+"__clientId"] != "" {
		e.add("azure identity", Broken, e.unset(storageSetting+"__clientId")+", or az functionapp identity assign "+e.here()+" --identities ID", "%s__clientId names an identity that is not assigned to the app", storageSetting)
		return
	}
	e.add("azure identity", Broken, "az functionapp identity assign "+e.here(), "the app has no identity of its own")
}

func (e *examination) settings() {
	before := len(e.findings)
	values := e.app.Settings.Is
	if e.app.StorageName() == "" {
		e.add("azure settings", Broken, e.set(storageForms()[0]+"=ACCOUNT"), "no setting names the storage account")
	} else if values[storageSetting] != "" {
		e.add("azure settings", Watch, e.set(storageForms()[0]+"="+e.app.StorageName())+" && "+e.unset(storageSetting), "%s holds a key: an identity needs none", storageSetting)
	}
	for _, name := range e.needs.Required {
		if strings.TrimSpace(values[name]) == "" {
			e.add("azure settings", Broken, e.set(name+"=VALUE")+" (docs/settings.md)", "%s is not set, and the program does not start without", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case name == "ROUNDHOUSE_LOCAL_KEY":
			e.add("azure settings", Broken, e.unset(name), "%s is for a developer's machine and stops the app here", name)
		case strings.HasPrefix(name, own) && !slices.Contains(e.needs.Settings, name):
			e.add("azure settings", Watch, e.unset(name), "%s is none of the program's settings: is its name right?", name)
		case strings.HasPrefix(name, "AzureFunctionsJobHost__"):
			e.add("azure settings", Watch, e.unset(name), "%s overrides host.json", name)
		}
	}
	if len(e.findings) == before {
		e.add("azure settings", Fine, "", "all that the program needs, and none that it does not know")
	}
}

// roles checks that the identity has the required roles.
func (e *examination) roles() {
	principal := e.app.Principal()
	if principal == "" {
		return // identity has reported that
	}
	targets := map[string]Part[Target]{"storage": e.app.Storage, "vault": e.app.Vault, "insights": e.app.Insights}
	before, looked, seen := len(e.findings), 0, map[string]bool{}
	for _, role := range e.needs.Roles {
		target, known := targets[role.Scope]
		if role.With != "" && e.app.Settings.Is[role.With] == "" {
			continue
		}
		check := "azure roles at " + role.Scope
		switch {
		case known && target.Err == nil && target.Is.ID != "" && !target.Is.ByPolicies:
			looked++
			if !slices.Contains(target.Is.Roles, strings.ToLower(role.ID)) {
				e.add(check, Broken, "az role assignment create --assignee-object-id "+principal+" --assignee-principal-type ServicePrincipal --role "+role.ID+" --scope "+target.Is.ID,
					"the identity does not have %s itself (roles of groups are not looked at)", role.Name)
			}
		case seen[check]:
		case target.Is.ByPolicies:
			e.add(check, Broken, "az keyvault update --ids "+target.Is.ID+" --enable-rbac-authorization true", "the vault goes by access policies, where roles mean nothing")
		case target.Err != nil:
			e.unread(check, target.Err, "Reader on it, which includes its role assignments")
		default:
			e.add(check, Watch, "look by hand", "not looked at: %s of the identity", role.Name)
		}
		seen[check] = true
	}
	if len(e.findings) == before && looked > 0 {
		e.add("azure roles", Fine, "", "the identity has the %d that the program needs", looked)
	}
}

// functions checks that the host has found exactly the program's functions.
func (e *examination) functions() {
	if e.app.Functions.Err != nil {
		e.unread("azure functions", e.app.Functions.Err, "Reader on the app")
		return
	}
	before := len(e.findings)
	there := map[string]bool{}
	for _, f := range e.app.Functions.Is {
		there[f.Name] = true
		if _, wanted := e.needs.Functions[f.Name]; !wanted {
			e.add("azure functions", Watch, deploy(e), "%s is deployed, and none of this program", f.Name)
		}
		if disabled := "AzureWebJobs." + f.Name + ".Disabled"; f.Disabled {
			e.add("azure functions", Watch, e.unset(disabled), "%s is disabled: what it does stays undone", f.Name)
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(e.needs.Functions)) {
		if !there[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		e.add("azure functions", Broken, deploy(e), "the host has not found %d of %d: %.500s", len(missing), len(e.needs.Functions), strings.Join(missing, ", "))
	}
	if len(e.findings) == before {
		e.add("azure functions", Fine, "", "%d, none disabled", len(there))
	}
}

func deploy(e *examination) string {
	return "deploy the program again (docs/deploy.md): roundhouse stage --zip app.zip && az functionapp deployment source config-zip " + e.here() + " --src app.zip"
}

// signIn checks that the handler receives requests that need no token.
func (e *examination) signIn() {
	signIn := e.app.SignIn
	switch {
	case signIn.Err != nil:
		e.unread("azure sign-in", signIn.Err, "Reader on the app")
		return
	case !signIn.Is.Enabled:
		e.add("azure sign-in", Watch, "az webapp auth update "+e.here()+" --enabled true (docs/security.md)", "the platform authenticates nobody: only function keys come in")
		return
	}
	var shut []string
	for _, r := range append(slices.Clone(e.needs.Access.Routes), Route{Path: "/api/machine/history", Opens: "key"}) {
		open := r.Permission == "public" || r.Opens != ""
		if signIn.Is.Required && open && !slices.ContainsFunc(signIn.Is.Excluded, func(path string) bool { return covers(path, r.Path) }) && !slices.Contains(shut, r.Path) {
			shut = append(shut, r.Path)
		}
	}
	if len(shut) > 0 {
		e.add("azure sign-in", Broken, "az webapp auth update "+e.here()+` --excluded-paths '["/api/machine/*", ...]' (docs/security.md)`, "the platform turns away what has no token, and does not exclude %.500s", strings.Join(shut, ", "))
		return
	}
	e.add("azure sign-in", Fine, "", "people sign in, and keys and intakes get through")
}

// covers reports whether an excluded path covers a route.
func covers(excluded, route string) bool {
	if prefix, ok := strings.CutSuffix(excluded, "*"); ok {
		return strings.HasPrefix(route, prefix)
	}
	return strings.EqualFold(strings.TrimSuffix(excluded, "/"), route)
}

// hostFile compares the deployed host.json with the program's.
func (e *examination) hostFile() {
	deployed := e.app.HostFile
	if deployed.Err != nil {
		e.unread("azure host.json", deployed.Err, "Website Contributor on the app")
		return
	}
	var theirs, ours any
	if err := errors.Join(jsonc.Unmarshal(deployed.Is, &theirs), json.Unmarshal(e.needs.HostFile, &ours)); err != nil {
		e.add("azure host.json", Broken, deploy(e), "host.json is no JSON")
		return
	}
	if paths := differences("", theirs, ours); len(paths) > 0 {
		e.add("azure host.json", Broken, deploy(e), "what is deployed differs from the program's in %.500s", strings.Join(paths, ", "))
		return
	}
	e.add("azure host.json", Fine, "", "as the program's")
}

// differences returns the members in which two JSON values differ, by their paths.
func differences(path string, a, b any) []string {
	left, ok1 := a.(map[string]any)
	right, ok2 := b.(map[string]any)
	if !ok1 || !ok2 {
		x, _ := json.Marshal(a) // decoded from JSON before
		y, _ := json.Marshal(b)
		if string(x) == string(y) {
			return nil
		}
		return []string{cmp.Or(path, "the whole")}
	}
	names := map[string]bool{}
	for name := range left {
		names[name] = true
	}
	for name := range right {
		names[name] = true
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, differences(strings.TrimPrefix(path+"."+name, "."), left[name], right[name])...)
	}
	return all
}
