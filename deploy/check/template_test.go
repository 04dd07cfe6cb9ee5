package check

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/deploy/check/bicep"
	"github.com/vibedata/roundhouse/internal/sample"
)

// root is the folder of the repository, template the path of the template.
const root = "../.."

var template = filepath.Join("..", "main.bicep")

// Example values of a deployment.
const (
	clientID = "00000000-0000-4000-8000-000000000002"
	vaultURL = "https://kv.vault.azure.net/"
)

// runtime returns Azure's answers.
func runtime(r *bicep.Resource, way string) (any, bool) {
	known := map[string]string{
		"properties.clientId":              clientID,
		"properties.vaultUri":              vaultURL,
		"properties.ConnectionString":      "InstrumentationKey=" + clientID,
		"properties.primaryEndpoints.blob": "https://storage.blob.core.windows.net/",
		"properties.defaultDomain":         "house.westeurope.azurecontainerapps.io",
		"properties.loginServer":           "registry.azurecr.io",
		"properties.principalId":           "principal of " + r.Name(),
	}
	value, ok := known[way]
	return value, ok
}

// required returns the parameters that have no default.
func required() map[string]any {
	return map[string]any{"environmentName": "test", "location": "westeurope"}
}

// deploy computes the deployment of the template for the given parameters.
func deploy(t *testing.T, params map[string]any) *bicep.Deployment {
	t.Helper()
	return deployFile(t, template, params)
}

// deployFile does the same with a copy of the template.
func deployFile(t *testing.T, path string, params map[string]any) *bicep.Deployment {
	t.Helper()
	all := maps.Clone(required())
	maps.Copy(all, params)
	d, err := bicep.Deploy(path, bicep.Config{Params: all, Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// plans returns the plans of apps.
func plans() []string { return []string{"flex", "premium", "container-apps"} }

// variants returns all combinations of options, or a sample of them together with the extremes.
func variants(t *testing.T) []map[string]any {
	t.Helper()
	all := []map[string]any{required()}
	for name, values := range map[string][]any{
		"plan": {"flex", "premium", "container-apps"}, "isolated": {false, true}, "publisher": {true, false}, "managedApp": {true, false},
		"signInClientId": {"", clientID}, "signInRequired": {false, true}, "payloadKey": {"", "payloads"}, "publisherImage": {"", "registry.azurecr.io/roundhouse:1"}, "alertEmail": {"", "ops@example.com"},
	} {
		var more []map[string]any
		for _, params := range all {
			for _, value := range values {
				with := maps.Clone(params)
				with[name] = value
				more = append(more, with)
			}
		}
		all = more
	}
	all = slices.DeleteFunc(all, func(params map[string]any) bool { return !sample.Keep(t, fmt.Sprint(params)) })
	return append(all, extremes()...)
}

// The template is right for all options: every resource conforms to the published types, and every parameter and
// variable is used. The template agrees with the program about the required settings, the roles and the open paths.
// Its log alert rules use the queries of the files.
func TestFindings(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*testing.T, string) []string{
		"resources": func(t *testing.T, path string) []string { return findings(t, path, variants(t)) },
		"settings":  settingFindings, "roles": roleFindings, "open paths": pathFindings, "rules over logs": logAlertFindings,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, finding := range look(t, template) {
				t.Error(finding)
			}
		})
	}
}

// findings returns the mistakes in a template for some variants.
func findings(t *testing.T, path string, variants []map[string]any) []string {
	t.Helper()
	types := publishedTypes(t)
	found, used, declared := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, params := range variants {
		d, err := bicep.Deploy(path, bicep.Config{Params: params, Runtime: runtime})
		if err != nil {
			return []string{err.Error()}
		}
		maps.Copy(used, d.Used)
		maps.Copy(declared, d.Declared)
		for _, r := range d.Resources {
			for _, finding := range types.Check(r) {
				found[finding] = true
			}
		}
	}
	for name := range declared {
		if !used[name] {
			found[name+" is of no use"] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// No two resources of a deployment have the same type, name and place. The names and the number of resources and
// settings are known before the deployment, because Azure Resource Manager does not accept values of other resources
// for them.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, params := range variants(t) {
		seen := map[string]string{}
		for _, r := range deploy(t, params).Resources {
			if r.Existing || r.Name() == "" {
				continue
			}
			place := placeOf(r)
			if other, twice := seen[place]; twice {
				t.Fatalf("%v: %s is deployed by %s and by %s", params, place, other, r.Module)
			}
			seen[place] = r.Module
		}
		atStart, err := bicep.Deploy(template, bicep.Config{Params: params})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range atStart.Resources {
			_, known := r.Body.Get("properties", "siteConfig", "appSettings").([]any)
			if r.Name() == "" || r.Body.Get("properties", "siteConfig") != nil && !known {
				t.Fatalf("%s:%d: the name is %v, and the settings are known: %v", r.File, r.Line, r.Body.Get("name"), known)
			}
		}
	}
}

// placeOf returns the place within which the name of a resource is unique.
func placeOf(r *bicep.Resource) string {
	place := r.Type + " " + r.Name()
	for _, in := range []*bicep.Resource{r.Parent, r.Scope} {
		if in != nil {
			place += " in " + placeOf(in)
		}
	}
	return place
}

// Names can be as long as Azure allows, but not longer.
func TestNameLengths(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"Microsoft.Storage/storageAccounts": 24, "Microsoft.KeyVault/vaults": 24, "Microsoft.App/containerApps": 32,
		"Microsoft.App/managedEnvironments": 32, "Microsoft.Web/sites": 60, "Microsoft.Web/serverfarms": 40, "Microsoft.ContainerRegistry/registries": 50}
	seen := map[string]bool{}
	for _, plan := range plans() {
		for _, r := range deploy(t, map[string]any{"plan": plan, "managedApp": true}).Resources {
			name, _, _ := strings.Cut(r.Type, "@")
			if most, limited := limits[name]; limited {
				seen[name] = true
				if len(r.Name()) == 0 || len(r.Name()) > most {
					t.Errorf("%s %q has %d characters, and may have %d", name, r.Name(), len(r.Name()), most)
				}
			}
		}
	}
	if len(seen) != len(limits) {
		t.Errorf("of %v only %v are deployed", limits, seen)
	}
}

// of returns the resources of a type.
func of(d *bicep.Deployment, name string) []*bicep.Resource {
	var found []*bicep.Resource
	for _, r := range d.Resources {
		if strings.HasPrefix(r.Type, name+"@") && !r.Existing {
			found = append(found, r)
		}
	}
	return found
}

// Access to storage and telemetry needs an identity, and no traffic leaves the network of an isolated app.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	for _, plan := range plans() {
		for _, isolated := range []bool{false, true} {
			d := deploy(t, map[string]any{"plan": plan, "managedApp": true, "isolated": isolated})
			public := map[bool]string{false: "Enabled", true: "Disabled"}[isolated]
			for kind, want := range map[string]map[string]any{
				"Microsoft.Storage/storageAccounts":        {"properties.allowSharedKeyAccess": false, "properties.allowBlobPublicAccess": false, "properties.minimumTlsVersion": "TLS1_2", "properties.publicNetworkAccess": public},
				"Microsoft.KeyVault/vaults":                {"properties.enableRbacAuthorization": true, "properties.enablePurgeProtection": true, "properties.publicNetworkAccess": public},
				"Microsoft.Insights/components":            {"properties.DisableLocalAuth": true},
				"Microsoft.OperationalInsights/workspaces": {"properties.features.disableLocalAuth": true},
			} {
				found := of(d, kind)
				if len(found) == 0 {
					t.Errorf("%s: none is deployed", kind)
				}
				for _, r := range found {
					for way, value := range want {
						if got := r.Body.Get(strings.Split(way, ".")...); got != value {
							t.Errorf("%s:%d: %s is %v, not %v", r.File, r.Line, way, got, value)
						}
					}
				}
			}
			if endpoints := len(of(d, "Microsoft.Network/privateEndpoints")); endpoints != map[bool]int{false: 0, true: 8}[isolated] {
				t.Errorf("isolated %v: %d private endpoints; two apps have blob, queue, table and vault each", isolated, endpoints)
			}
		}
	}
}

// Every private endpoint registers itself in an existing zone.
func TestZones(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]any{"isolated": true, "managedApp": true})
	zones := map[string]bool{}
	for _, r := range of(d, "Microsoft.Network/privateDnsZones") {
		zones[r.Name()] = false
	}
	for _, r := range of(d, "Microsoft.Network/privateEndpoints/privateDnsZoneGroups") {
		configs, _ := r.Body.Get("properties", "privateDnsZoneConfigs").([]any)
		for _, config := range configs {
			zone := strings.TrimPrefix(fmt.Sprint(config.(*bicep.Object).Get("properties", "privateDnsZoneId")), "Microsoft.Network/privateDnsZones/")
			if _, ok := zones[zone]; !ok {
				t.Errorf("%s: there is no zone %s", r.Parent.Name(), zone)
			}
			zones[zone] = true
		}
	}
	for zone, used := range zones {
		if !used {
			t.Errorf("nothing registers itself in %s", zone)
		}
	}
}

// A container app trusts the platform's caller headers only where the platform's authentication is configured: for an
// existing app the authentication is configured before the app learns of it, for a new app, which is empty,
// afterwards.
func TestContainerSignIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ client, image, want string }{
		"nobody signs in": {"", "registry.azurecr.io/roundhouse:1", ""},
		"a new app":       {clientID, "", "publisher/signin-after-publisher"},
		"an app that is":  {clientID, "registry.azurecr.io/roundhouse:1", "publisher/signin-before-publisher"},
	} {
		d := deploy(t, map[string]any{"plan": "container-apps", "signInClientId": c.client, "publisherImage": c.image})
		var at []string
		for _, r := range of(d, "Microsoft.App/containerApps/authConfigs") {
			at = append(at, r.Module)
		}
		if strings.Join(at, " ") != c.want {
			t.Errorf("%s: authentication is turned on by %q", name, at)
		}
		if _, trusts := settingsOf(t, d)["WEBSITE_AUTH_ENABLED"]; trusts != (c.client != "") {
			t.Errorf("%s: the app trusts the platform: %v", name, trusts)
		}
	}
}
