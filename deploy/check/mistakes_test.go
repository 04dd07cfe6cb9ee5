package check

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// broken returns a copy of the template with one text in one file replaced.
func broken(t *testing.T, file, old, with string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "observability", "azure"), os.DirFS(azureMonitor)); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("../*.*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	whole := text(t, "deploy", file)
	if !strings.Contains(whole, old) {
		t.Fatalf("%s has no %q", file, old)
	}
	for _, path := range append(paths, filepath.Join("..", file)) {
		content := text(t, "deploy", "check", path)
		if content == whole {
			content = strings.Replace(whole, old, with, 1)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimPrefix(path, "../")), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "main.bicep")
}

// extremes returns all plans with all options and with none of them.
func extremes() []map[string]any {
	var all []map[string]any
	for _, plan := range plans() {
		least, most := maps.Clone(required()), maps.Clone(required())
		least["plan"] = plan
		maps.Copy(most, map[string]any{"plan": plan, "isolated": true, "managedApp": true, "signInClientId": clientID, "signInRequired": true,
			"publisherImage": "registry.azurecr.io/roundhouse:1", "payloadKey": "payloads", "alertEmail": "ops@example.com"})
		all = append(all, least, most)
	}
	return all
}

// The tests find a mistake in the template, and the finding names it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, old, with, want string }{
		"a member that is not there":     {"flex.bicep", "httpsOnly:", "httpOnly:", "properties.httpOnly: there is no such member"},
		"a deep member":                  {"flex.bicep", "userAssignedIdentityResourceId:", "identityResourceId:", "there is no such member"},
		"text for a number":              {"flex.bicep", "instanceMemoryMB: 2048", "instanceMemoryMB: '2048'", "2048 is not a number"},
		"a number for text":              {"network.bicep", "addressPrefix: '10.80.0.0/24'", "addressPrefix: 10", "10 is not a string"},
		"text for a truth":               {"premium.bicep", "httpsOnly: true", "httpsOnly: 'yes'", "yes is not true or false"},
		"a member for a list":            {"network.bicep", "['10.80.0.0/16']", "'10.80.0.0/16'", "is not an array"},
		"an unknown version":             {"storage.bicep", "storageAccounts@2023-05-01' = {", "storageAccounts@2023-05-31' = {", "has no API version"},
		"an unknown type":                {"vault.bicep", "Microsoft.KeyVault/vaults@", "Microsoft.KeyVault/vault@", "there is no resource type"},
		"a type in other letters":        {"vault.bicep", "Microsoft.KeyVault/vaults@", "Microsoft.Keyvault/vaults@", "is written Microsoft.KeyVault/vaults"},
		"none of the values":             {"signin.bicep", "'Return401'", "'Return402'", `"Return402" is none of`},
		"none of the values it names":    {"flex.bicep", "'blobContainer'", "'blobcontainer'", `"blobcontainer" is none of`},
		"a branch that is seldom taken":  {"storage.bicep", "'Deny'", "'Denied'", `"Denied" is none of`},
		"one of several kinds":           {"signin.bicep", "name: 'authsettingsV2'", "name: 'authsettingsV3'", `name is "authsettingsV3"`},
		"a member that only Azure sets":  {"monitoring.bicep", "retentionInDays: 30", "retentionInDays: 30\n    customerId: 'mine'", "only Azure sets it"},
		"a member that is missing":       {"storage.bicep", "  location: location\n  tags: tags\n  kind", "  tags: tags\n  kind", "location: it is missing"},
		"syntax":                         {"flex.bicep", "kind: 'functionapp,linux'", "kind = x", "this is no Bicep"},
		"a brace too few":                {"vault.bicep", "sku: { family: 'A', name: 'standard' }", "sku: { family: 'A', name: 'standard'", "this is no Bicep"},
		"an unknown symbol":              {"flex.bicep", "serverFarmId: plan.id", "serverFarmId: plant.id", "nothing here has the name plant"},
		"an unknown function":            {"main.bicep", "toLower(", "toLover(", "the function toLover"},
		"a module without a parameter":   {"context.bicep", "    payloadKey: payloadKey\n", "", "the parameter payloadKey is not given"},
		"a module with a parameter more": {"context.bicep", "    payloadKey: payloadKey\n", "    payloadKey: payloadKey\n    colour: 'red'\n", "there is no parameter colour"},
		"a member of a module":           {"main.bicep", "scope: group", "scop: group", "a module has no member scop"},
		"an output that is not there":    {"main.bicep", "outputs.storageName", "outputs.storagename", "there is no member storagename"},
		"what is not always deployed":    {"context.bicep", "container.?outputs", "container.outputs", "is not always deployed"},
		"a circle":                       {"context.bicep", "var short =", "var vicious = circle\nvar circle = vicious\nvar short =", "depends on itself"},
		"a name twice":                   {"context.bicep", "var short =", "var plan = 'x'\nvar short =", "plan is declared twice"},
		"a parameter of no use":          {"alerts.bicep", "param email string", "param email string\nparam phone string = ''", "phone is of no use"},
		"a member twice":                 {"vault.bicep", "    enableSoftDelete: true\n", "    enableSoftDelete: true\n    enableSoftDelete: false\n", "is there twice"},
		"a module that is not there":     {"main.bicep", "'network.bicep'", "'net.bicep'", "net.bicep"},
		"a file of data that is no JSON": {"open-paths.json", "]", "", "loadJsonContent"},
		"a file of text that is missing": {"logalerts.bicep", "alerts/dead-letters.kql", "alerts/dead-letter.kql", "loadTextContent"},
		"a member of a rule":             {"logalerts.bicep", "evaluationFrequency:", "frequency:", "properties.frequency: there is no such member"},
		"a criterion of a rule":          {"logalerts.bicep", "'GreaterThan'", "'MoreThan'", `"MoreThan" is none of`},
		"a severity of a rule":           {"logalerts.bicep", "severity: 1", "severity: 'high'", "high is not a number"},
		"a kind of workbook":             {"monitoring.bicep", "kind: 'shared'", "kind: 'user'", `"user" is none of`},
		"a workbook without a category":  {"monitoring.bicep", "    category: 'workbook'\n", "", "properties.category: it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := strings.Join(findings(t, broken(t, c.file, c.old, c.with), extremes()), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("%q is not in what was found:\n%s", c.want, found)
			}
		})
	}
}

// The tests find a difference between the template and the program, and the finding names it.
func TestDisagreements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, old, with, want string
		look                  func(*testing.T, string) []string
	}{
		"a setting too few":             {"context.bicep", "  ROUNDHOUSE_OUTBOX: outbox\n", "  ROUNDHOUSE_PUBLIC_URL: outbox\n", "the program needs ROUNDHOUSE_OUTBOX", settingFindings},
		"an empty setting":              {"context.bicep", "ROUNDHOUSE_UPDATE_ENDPOINT: updateEndpoint", "ROUNDHOUSE_UPDATE_ENDPOINT: ''", "managed-app on flex: the program needs ROUNDHOUSE_UPDATE_ENDPOINT", settingFindings},
		"a setting that nobody reads":   {"context.bicep", "  ROUNDHOUSE_CONTEXT:", "  ROUNDHOUSE_COLOUR: 'red'\n  ROUNDHOUSE_CONTEXT:", "the program does not read ROUNDHOUSE_COLOUR", settingFindings},
		"one of the other context":      {"context.bicep", "? { ROUNDHOUSE_SPN_TENANT: tenant().tenantId }", "? { ROUNDHOUSE_SPN_TENANT: tenant().tenantId, ROUNDHOUSE_UPDATE_AUTH: '' }", "the program does not read ROUNDHOUSE_UPDATE_AUTH", settingFindings},
		"a connection in another way":   {"context.bicep", "AzureWebJobsStorage__credential", "AzureWebJobsStorage__secret", "docs/settings.md does not have it", settingFindings},
		"the runtime on flex":           {"context.bicep", "  ROUNDHOUSE_CONTEXT:", "  FUNCTIONS_WORKER_RUNTIME: 'custom'\n  ROUNDHOUSE_CONTEXT:", "Flex Consumption refuses it", settingFindings},
		"a setting of the host missing": {"premium.bicep", "  FUNCTIONS_EXTENSION_VERSION: '~4'\n", "", "does not set FUNCTIONS_EXTENSION_VERSION", settingFindings},
		"a role too few":                {"roles.bicep", "  '974c5e8b-45b9-4653-ba55-5f855dd0fb88' // Storage Queue Data Contributor\n", "", "needed", roleFindings},
		"a role too many":               {"roles.bicep", "var componentRoles = [", "var componentRoles = ['14b46e9e-c2b7-41b4-b07b-48a6ebf60603', ", "assigned", roleFindings},
		"the publisher's for everybody": {"roles.bicep", "context == 'publisher' ?", "context != '' ?", "managed-app on flex", roleFindings},
		"a role at another place":       {"roles.bicep", "  scope: vault\n", "  scope: storage\n", "assigned", roleFindings},
		"a role at everything":          {"roles.bicep", "  scope: vault\n", "", "assigned", roleFindings},
		"a role for somebody else":      {"context.bicep", "principalId: identity.properties.principalId\n    storageName", "principalId: tenant().tenantId\n    storageName", "the role is that of", roleFindings},
		"an account that is not there":  {"context.bicep", "    storageName: storageName\n", "    storageName: 'other'\n", "there is no Microsoft.Storage/storageAccounts other", roleFindings},
		"an intake that is closed":      {"open-paths.json", "  \"/api/marketplace/webhook\",\n", "", "/api/marketplace/webhook: has to be open: true", pathFindings},
		"a route that is open":          {"open-paths.json", "/api/health/ready", "/api/health/*", "/api/health/full: has to be open: false", pathFindings},
		"a route that is gone":          {"open-paths.json", "/api/alerts", "/api/alarms", "/api/alarms is open, and no route is there", pathFindings},
		"an alert without a runbook":    {"logalerts.bicep", "runbook: 'nothing-is-invoked'", "runbook: 'nobody-knows'", "docs/recovery.md has no heading for", logAlertFindings},
		"an alert that nobody hears of": {"logalerts.bicep", "[peopleId]", "[]", "it has 0 receivers", logAlertFindings},
		"an alert that misses lines":    {"logalerts.bicep", "window: 'PT15M'", "window: 'PT1M'", "it is evaluated every 5m0s over 1m0s", logAlertFindings},
		"an alert that tells twice":     {"logalerts.bicep", "clears: true", "clears: false", "it tells a line more than once", logAlertFindings},
		"an alert that no rule asks":    {"logalerts.bicep", "name: 'dead-letters'", "name: 'letters'", "dead-letters: no rule asks this", logAlertFindings},
		"what no rule may have":         {"observability/azure/alerts/nothing-invoked.kql", "ago(30m)", "ago(late)", "a rule may not have ago(late)", logAlertFindings},
		"what is before the window":     {"observability/azure/alerts/nothing-invoked.kql", "ago(30m)", "ago(9000m)", "ago(9000m) is before what it looks at", logAlertFindings},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := strings.Join(c.look(t, broken(t, c.file, c.old, c.with)), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("%q is not in what was found:\n%s", c.want, found)
			}
		})
	}
}
