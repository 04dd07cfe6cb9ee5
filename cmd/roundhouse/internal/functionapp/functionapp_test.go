package functionapp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/functionapp"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// secret is in the value of every setting of the fake: no output may contain it.
const secret = "c2VjcmV0LW9mLXRoZS1mYWtl"

const (
	group     = "/subscriptions/0a/resourceGroups/g"
	id        = group + "/providers/Microsoft.Web/sites/orders"
	principal = "5e11c0de-0000-4000-8000-000000000001"
)

type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// resourceManager is Azure Resource Manager over HTTP, with the shapes of its answers: a path has a document, or a
// status.
type resourceManager map[string]any

func (m resourceManager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer t" || r.URL.Query().Get("api-version") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	key := r.Method + " " + r.URL.Path
	if filter := r.URL.Query().Get("$filter"); filter != "" {
		key += "?" + filter
	}
	if page := r.URL.Query().Get("page"); page != "" {
		key += "?page=" + page
	}
	switch answer := m[key].(type) {
	case nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"code":"ResourceNotFound","message":"nothing at ` + key + `"}}`))
	case int:
		w.WriteHeader(answer)
		_, _ = w.Write([]byte(`{"error":{"code":"AuthorizationFailed","message":"you may not"}}`))
	case string:
		_, _ = w.Write([]byte(strings.ReplaceAll(answer, "SELF", "https://"+r.Host)))
	}
}

// with returns the same Azure with replaced answers; nil removes one.
func (m resourceManager) with(answers resourceManager) resourceManager {
	other := maps.Clone(m)
	maps.Copy(other, answers)
	return other
}

func settingsOf(pairs map[string]string) string {
	text, _ := json.Marshal(map[string]any{"properties": pairs})
	return string(text)
}

// wellSettings returns the settings of a complete app.
func wellSettings() map[string]string {
	return map[string]string{"AzureWebJobsStorage__accountName": "acct1", "AzureWebJobsStorage__credential": "managedidentity", "ROUNDHOUSE_KEY_VAULT_URL": "https://vault1.vault.azure.net",
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"log":{"log":{}}},"routes":[{"eventType":"*","destination":"log"}]}`, "ROUNDHOUSE_SPN_TENANT": "contoso.example", "ROUNDHOUSE_ACME_CONTACT": secret + "@example.com",
		"APPLICATIONINSIGHTS_CONNECTION_STRING":     "InstrumentationKey=11111111-2222-4333-8444-555555555555;IngestionEndpoint=https://x/;" + secret,
		"APPLICATIONINSIGHTS_AUTHENTICATION_STRING": "Authorization=AAD"}
}

func withSetting(pairs ...string) string {
	all := wellSettings()
	for i := 0; i < len(pairs); i += 2 {
		if all[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(all, pairs[i])
		}
	}
	return settingsOf(all)
}

const (
	storageID  = group + "/providers/Microsoft.Storage/storageAccounts/acct1"
	vaultID    = group + "/providers/Microsoft.KeyVault/vaults/vault1"
	insightsID = group + "/providers/Microsoft.Insights/components/logs1"
	assigned   = "/providers/Microsoft.Authorization/roleAssignments?principalId eq '" + principal + "'"
)

func assignments(scope string, roles ...string) string {
	var rows []string
	for _, role := range roles {
		rows = append(rows, fmt.Sprintf(`{"properties":{"scope":%q,"roleDefinitionId":"/subscriptions/0a/providers/Microsoft.Authorization/roleDefinitions/%s"}}`, scope, role))
	}
	return `{"value":[` + strings.Join(rows, ",") + `]}`
}

func functionsOf(disabled string, names ...string) string {
	var rows []string
	for _, name := range names {
		rows = append(rows, fmt.Sprintf(`{"name":"orders/%s","properties":{"name":%q,"isDisabled":%v}}`, name, name, name == disabled))
	}
	return `{"value":[` + strings.Join(rows, ",") + `]}`
}

// well returns an Azure with an app that has exactly the program's requirements.
func well(needs functionapp.Needs) resourceManager {
	roles := map[string][]string{}
	for _, role := range needs.Roles {
		if role.With != "ROUNDHOUSE_PAYLOAD_KEY" {
			roles[role.Scope] = append(roles[role.Scope], role.ID)
		}
	}
	names := slices.Sorted(maps.Keys(needs.Functions))
	first := functionsOf("", names[:10]...)
	return resourceManager{
		"GET " + id: `{"id":"` + id + `","identity":{"type":"SystemAssigned","principalId":"` + principal + `"},"properties":{"state":"Running","defaultHostName":"orders.azurewebsites.net",` +
			`"hostNames":["orders.example.com"],"httpsOnly":true,"functionAppConfig":{"runtime":{"name":"custom","version":"1.0"}}}}`,
		"POST " + id + "/config/appsettings/list":        settingsOf(wellSettings()),
		"GET " + id + "/functions":                       strings.TrimSuffix(first, "}") + `,"nextLink":"SELF` + id + `/functions?page=2&api-version=2"}`,
		"GET " + id + "/functions?page=2":                functionsOf("", names[10:]...),
		"GET " + id + "/host/default/properties/status":  `{"properties":{"state":"Running","version":"4.1045.1"}}`,
		"GET " + id + "/hostruntime/admin/vfs/host.json": string(needs.HostFile),
		"GET " + id + "/config/authsettingsV2":           `{"properties":{"platform":{"enabled":true},"globalValidation":{"requireAuthentication":false}}}`,
		"GET /subscriptions/0a/resources?resourceType eq 'Microsoft.Storage/storageAccounts' and name eq 'acct1'": `{"value":[{"id":"` + storageID + `"}]}`,
		"GET /subscriptions/0a/resources?resourceType eq 'Microsoft.KeyVault/vaults' and name eq 'vault1'":        `{"value":[{"id":"` + vaultID + `"}]}`,
		"GET " + vaultID: `{"properties":{"enableRbacAuthorization":true}}`,
		"GET /subscriptions/0a/providers/Microsoft.Insights/components": `{"value":[{"id":"other","properties":{"InstrumentationKey":"0"}},{"id":"` + insightsID + `","properties":{"InstrumentationKey":"11111111-2222-4333-8444-555555555555"}}]}`,
		"GET " + storageID + assigned:                                   assignments(group, roles["storage"]...),
		"GET " + vaultID + assigned:                                     assignments(vaultID, roles["vault"]...),
		"GET " + insightsID + assigned:                                  assignments("/subscriptions/0a", roles["insights"]...),
	}
}

// program returns the requirements of Roundhouse's own program.
func program(t *testing.T) functionapp.Needs {
	t.Helper()
	testenv.Long(t)
	const root = "../../../.."
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/handler", "manifest")
	cmd.Dir = root
	text, err := cmd.Output()
	var needs functionapp.Needs
	if err == nil {
		err = json.Unmarshal(text, &needs)
	}
	file, fileErr := os.ReadFile(root + "/host.json")
	testenv.OK(t, errors.Join(err, fileErr))
	needs.HostFile = file
	return needs
}

// examine reads and examines the app of an Azure, and returns the problems: level, check and finding, and the fix.
func examine(t *testing.T, m resourceManager, needs *functionapp.Needs) (findings []string) {
	t.Helper()
	server := httptest.NewTLSServer(m)
	defer server.Close()
	c, err := functionapp.New(functionapp.Config{Credential: token{}, Endpoint: server.URL, Transport: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	app := testenv.Must(c.Read(t.Context(), id))(t)
	for _, f := range functionapp.Examine(app, needs) {
		text := fmt.Sprintf("%s %s: %s -> %s", []string{"ok", "warn", "fail"}[f.Level], f.Check, f.Found, f.Fix)
		if f.Level != functionapp.Fine {
			findings = append(findings, text)
		}
		if strings.Contains(text, secret) {
			t.Errorf("a value of a setting is shown: %s", text)
		}
		if f.Level != functionapp.Fine && f.Fix == "" {
			t.Errorf("nothing to do about %s", text)
		}
	}
	return findings
}

func TestExamine(t *testing.T) {
	t.Parallel()
	needs := program(t)
	good := well(needs)
	settings, auth := "POST "+id+"/config/appsettings/list", "GET "+id+"/config/authsettingsV2"
	names := slices.Sorted(maps.Keys(needs.Functions))
	all := functionsOf("", names...)
	site, _ := good["GET "+id].(string)
	for name, tt := range map[string]struct {
		azure resourceManager
		want  []string // each a part of one finding, in order
	}{
		"well":            {nil, nil},
		"stopped":         {resourceManager{"GET " + id: strings.Replace(site, `"Running"`, `"Stopped"`, 1)}, []string{"fail azure app: orders is Stopped -> az functionapp start -g g -n orders"}},
		"plain http":      {resourceManager{"GET " + id: strings.Replace(site, `"httpsOnly":true`, `"httpsOnly":false`, 1)}, []string{"warn azure https"}},
		"another runtime": {resourceManager{"GET " + id: strings.Replace(site, `"custom"`, `"node"`, 1)}, []string{`fail azure runtime: the plan runs "node"`}},
		"runtime on Flex": {resourceManager{settings: withSetting("FUNCTIONS_WORKER_RUNTIME", "custom")}, []string{"fail azure runtime: FUNCTIONS_WORKER_RUNTIME is set, which Flex Consumption refuses -> az functionapp config appsettings delete -g g -n orders --setting-names FUNCTIONS_WORKER_RUNTIME"}},
		"Premium without": {resourceManager{"GET " + id: strings.Replace(site, `"functionAppConfig"`, `"other"`, 1)}, []string{"fail azure runtime: FUNCTIONS_WORKER_RUNTIME is not custom"}},
		"Premium with":    {resourceManager{"GET " + id: strings.Replace(site, `"functionAppConfig"`, `"other"`, 1), settings: withSetting("FUNCTIONS_WORKER_RUNTIME", "custom", "FUNCTIONS_EXTENSION_VERSION", "~4")}, nil},
		"no identity":     {resourceManager{"GET " + id: strings.Replace(site, principal, "", 1)}, []string{"fail azure identity: the app has no identity of its own -> az functionapp identity assign -g g -n orders"}},
		"a user's identity": {resourceManager{"GET " + id: strings.Replace(site, `"principalId":"`+principal+`"`, `"userAssignedIdentities":{"x":{"clientId":"c1","principalId":"`+principal+`"}}`, 1),
			settings: withSetting("AzureWebJobsStorage__clientId", "c1")}, nil},
		"of another app":   {resourceManager{settings: withSetting("AzureWebJobsStorage__clientId", "c2")}, []string{"fail azure identity: AzureWebJobsStorage__clientId names an identity that is not assigned"}},
		"the host fails":   {resourceManager{"GET " + id + "/host/default/properties/status": `{"properties":{"state":"Error","errors":["port 1"]}}`}, []string{`fail azure host: the host is "Error": port 1`}},
		"a setting less":   {resourceManager{settings: withSetting("ROUNDHOUSE_SPN_TENANT", "")}, []string{"fail azure settings: ROUNDHOUSE_SPN_TENANT is not set"}},
		"a wrong name":     {resourceManager{settings: withSetting("ROUNDHOUSE_SPN_TENNANT", secret)}, []string{"warn azure settings: ROUNDHOUSE_SPN_TENNANT is none of"}},
		"a local key":      {resourceManager{settings: withSetting("ROUNDHOUSE_LOCAL_KEY", secret)}, []string{"fail azure settings: ROUNDHOUSE_LOCAL_KEY is for"}},
		"an override":      {resourceManager{settings: withSetting("AzureFunctionsJobHost__extensions__queues__batchSize", secret)}, []string{"warn azure settings: AzureFunctionsJobHost__extensions__queues__batchSize overrides"}},
		"a shared key":     {resourceManager{settings: withSetting("AzureWebJobsStorage__accountName", "", "AzureWebJobsStorage", "AccountName=acct1;AccountKey="+secret)}, []string{"warn azure settings: AzureWebJobsStorage holds a key"}},
		"the services":     {resourceManager{settings: withSetting("AzureWebJobsStorage__accountName", "", "AzureWebJobsStorage__blobServiceUri", "https://acct1.blob.core.windows.net")}, nil},
		"no storage":       {resourceManager{settings: withSetting("AzureWebJobsStorage__accountName", "")}, []string{"fail azure settings: no setting names the storage account", "warn azure roles at storage: not looked at"}},
		"a role less":      {resourceManager{"GET " + insightsID + assigned: `{"value":[]}`}, []string{"fail azure roles at insights: the identity does not have Monitoring Metrics Publisher itself"}},
		"a role below":     {resourceManager{"GET " + insightsID + assigned: assignments(insightsID+"/below", "3913510d-42f4-4e42-8a64-420c390055eb")}, []string{"fail azure roles at insights"}},
		"a role above":     {resourceManager{"GET " + insightsID + assigned: assignments("/providers/Microsoft.Management/managementGroups/m", "3913510D-42f4-4e42-8a64-420c390055eb")}, nil},
		"encrypted":        {resourceManager{settings: withSetting("ROUNDHOUSE_PAYLOAD_KEY", "payloads")}, []string{"fail azure roles at vault: the identity does not have Key Vault Crypto Service Encryption User itself (roles of groups are not looked at) -> az role assignment create --assignee-object-id " + principal + " --assignee-principal-type ServicePrincipal --role e147488a-f6f5-4113-8e2d-b22465e65bf6 --scope " + vaultID}},
		"access policies":  {resourceManager{"GET " + vaultID: `{"properties":{}}`}, []string{"fail azure roles at vault: the vault goes by access policies"}},
		"no telemetry":     {resourceManager{settings: withSetting("APPLICATIONINSIGHTS_AUTHENTICATION_STRING", ""), "GET " + insightsID + assigned: `{"value":[]}`}, nil},
		"storage away":     {resourceManager{"GET /subscriptions/0a/resources?resourceType eq 'Microsoft.Storage/storageAccounts' and name eq 'acct1'": `{"value":[]}`}, []string{"warn azure roles at storage: not looked at: Microsoft.Storage/storageAccounts acct1 is not among"}},
		"no such right":    {resourceManager{"GET " + vaultID + assigned: 403}, []string{"warn azure roles at vault: not looked at: 403 Forbidden AuthorizationFailed: you may not -> ask for Reader"}},
		"settings shut":    {resourceManager{settings: 403}, []string{"warn azure settings: not looked at: 403 Forbidden"}},
		"a function less":  {resourceManager{"GET " + id + "/functions": functionsOf("", names[1:]...)}, []string{"fail azure functions: the host has not found 1 of"}},
		"one more":         {resourceManager{"GET " + id + "/functions": functionsOf("", append([]string{"old"}, names...)...)}, []string{"warn azure functions: old is deployed"}},
		"one disabled":     {resourceManager{"GET " + id + "/functions": functionsOf(names[3], names...)}, []string{"warn azure functions: " + names[3] + " is disabled: what it does stays undone -> az functionapp config appsettings delete -g g -n orders --setting-names AzureWebJobs." + names[3] + ".Disabled"}},
		"a page elsewhere": {resourceManager{"GET " + id + "/functions": strings.TrimSuffix(all, "}") + `,"nextLink":"https://example.com/"}`}, []string{"warn azure functions: not looked at: the next page is said to be at another address"}},
		"an endless list":  {resourceManager{"GET " + id + "/functions?page=2": strings.TrimSuffix(all, "}") + `,"nextLink":"SELF` + id + `/functions?page=2&api-version=2"}`}, []string{"warn azure functions: not looked at: the list has more than 50 pages"}},
		"nobody signs in":  {resourceManager{auth: `{"properties":{}}`}, []string{"warn azure sign-in: the platform authenticates nobody"}},
		"shut for keys":    {resourceManager{auth: `{"properties":{"platform":{"enabled":true},"globalValidation":{"requireAuthentication":true,"excludedPaths":["/api/health/*","/api/alerts"]}}}`}, []string{"fail azure sign-in: the platform turns away what has no token, and does not exclude /api/acme-challenge/:token, /api/marketplace/webhook, /api/managed-app/resource, /api/reports, /api/machine/history"}},
		"strict":           {resourceManager{auth: `{"properties":{"platform":{"enabled":true},"globalValidation":{"requireAuthentication":true,"excludedPaths":["/api/health/live","/api/health/ready","/api/machine/*","/api/alerts","/api/acme-challenge/*","/api/marketplace/webhook","/api/managed-app/*","/api/reports"]}}}`}, nil},
		"other host.json":  {resourceManager{"GET " + id + "/hostruntime/admin/vfs/host.json": strings.Replace(string(needs.HostFile), `"messageEncoding": "none"`, `"messageEncoding": "base64"`, 1)}, []string{"fail azure host.json: what is deployed differs from the program's in extensions.queues.messageEncoding"}},
		"no host.json":     {resourceManager{"GET " + id + "/hostruntime/admin/vfs/host.json": 404}, []string{"warn azure host.json: not looked at: 404"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := examine(t, good.with(tt.azure), &needs)
			if len(got) != len(tt.want) {
				t.Fatalf("findings %q, want %q", got, tt.want)
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("finding %q, want %q", got[i], want)
				}
			}
		})
	}
}

// Without a program, the app alone is checked.
func TestExamineAlone(t *testing.T) {
	t.Parallel()
	needs := program(t)
	if got := examine(t, well(needs), nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// An id leads to a Function App, and a missing app is an error.
func TestRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(resourceManager{})
	defer server.Close()
	c, err := functionapp.New(functionapp.Config{Credential: token{}, Endpoint: server.URL, Transport: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "orders", group, group + "/providers/Microsoft.Storage/storageAccounts/a", id + "/../../x", id + "?a=b", id + "%2F"} {
		if _, err := c.Read(t.Context(), bad); !errors.Is(err, functionapp.ErrNotApp) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	_, err = c.Read(t.Context(), id+"/slots/next")
	refusal, ok := errors.AsType[*functionapp.Error](err)
	if !ok {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&functionapp.Error{Status: 404, Code: "ResourceNotFound", Message: "nothing at GET " + id + "/slots/next"}, refusal); diff != "" {
		t.Error(diff)
	}
}

// A storage account is named without a secret.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, want map[string]string }{
		{map[string]string{"AzureWebJobsStorage": "DefaultEndpointsProtocol=https;AccountName=acct1;AccountKey=" + secret}, map[string]string{"AzureWebJobsStorage__accountName": "acct1"}},
		{map[string]string{"AzureWebJobsStorage__accountName": "acct1", "AzureWebJobsStorage__clientId": "c"}, map[string]string{"AzureWebJobsStorage__accountName": "acct1"}},
		{map[string]string{"AzureWebJobsStorage__queueServiceUri": "https://q.example"}, map[string]string{"AzureWebJobsStorage__queueServiceUri": "https://q.example"}},
		{nil, map[string]string{}},
	} {
		app := functionapp.App{Settings: functionapp.Part[map[string]string]{Is: tt.settings}}
		testenv.Equal(t, "", tt.want, app.Endpoints())
	}
}
