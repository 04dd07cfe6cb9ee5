package azure_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/azure"
)

// The identity is that of the host. A loopback server acts as the token endpoint of managed identities.
func TestIdentityOfTheSettings(t *testing.T) {
	const id, resource = "0ac4e6f0-1111-4222-8333-aabbccddeeff", "/subscriptions/s/resourcegroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
	var asked url.Values
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"t","expires_on":"%d","resource":"r","token_type":"Bearer"}`, time.Now().Add(time.Hour).Unix())
	}))
	t.Cleanup(endpoint.Close)
	t.Setenv("IDENTITY_ENDPOINT", endpoint.URL)
	t.Setenv("IDENTITY_HEADER", "h")
	for _, name := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "") // registers the restore
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for name, tt := range map[string]struct {
		settings        map[string]string
		parameter, want string
	}{
		"system-assigned":           {map[string]string{"__credential": "managedidentity"}, "client_id", ""},
		"client id":                 {map[string]string{"__credential": "managedidentity", "__clientId": id}, "client_id", id},
		"client id alone":           {map[string]string{"__clientId": id}, "client_id", id},
		"camel case":                {map[string]string{"__credential": "managedIdentity", "__clientId": id}, "client_id", id},
		"names with a capital":      {map[string]string{"__Credential": "ManagedIdentity", "__ClientId": id}, "client_id", id},
		"names in upper case":       {map[string]string{"__CREDENTIAL": "managedidentity", "__CLIENTID": id}, "client_id", id},
		"names in lower case":       {map[string]string{"__credential": "managedidentity", "__clientid": id}, "client_id", id},
		"line ends":                 {map[string]string{"__credential": "managedidentity\n", "__clientId": " " + id + "\r\n"}, "client_id", id},
		"id in another spelling":    {map[string]string{"__clientId": "{" + strings.ToUpper(id) + "}"}, "client_id", id},
		"resource id":               {map[string]string{"__credential": "managedidentity", "__managedIdentityResourceId": resource}, "mi_res_id", resource},
		"resource id alone":         {map[string]string{"__managedIdentityResourceId": resource}, "mi_res_id", resource},
		"object id":                 {map[string]string{"__credential": "managedidentity", "__managedIdentityObjectId": id}, "object_id", id},
		"client id and a tenant":    {map[string]string{"__clientId": id, "__tenantId": id}, "client_id", id},
		"an empty client id":        {map[string]string{"__credential": "managedidentity", "__clientId": " "}, "client_id", ""},
		"a secret without its name": {map[string]string{"__credential": "managedidentity", "__clientId": id, "__clientSecret": "geheim"}, "client_id", id},
	} {
		n++
		asked = nil
		a, err := azure.FromEnvironment(func(setting string) (string, bool) {
			v, ok := tt.settings[strings.TrimPrefix(setting, "AzureWebJobsStorage")]
			if setting == "AzureWebJobsStorage__AccountName" {
				return "abc", true
			}
			return v, ok
		}, "AzureWebJobsStorage")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// Tokens are cached for the whole process, so each case uses its own scope.
		if _, err := a.Credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{fmt.Sprintf("https://scope%d.example/.default", n)}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := asked.Get(tt.parameter); asked == nil || got != tt.want {
			t.Errorf("%s: asked for %v", name, asked)
		}
	}
}

// Settings that the app cannot apply as the host does are refused, with the setting's name and without a secret.
func TestIdentityThatIsNotTheHosts(t *testing.T) {
	t.Parallel()
	const id = "0ac4e6f0-1111-4222-8333-aabbccddeeff"
	for name, tt := range map[string]struct {
		settings map[string]string
		want     string
	}{
		"unknown credential":     {map[string]string{"__credential": "password"}, "__credential: use"},
		"no id":                  {map[string]string{"__clientId": "contoso"}, "__clientId: it is not an id"},
		"two ids":                {map[string]string{"__credential": "managedidentity", "__clientId": id, "__managedIdentityObjectId": id}, "set one of them"},
		"object id alone":        {map[string]string{"__managedIdentityObjectId": id}, "__managedIdentityObjectId: it takes credential"},
		"a secret without names": {map[string]string{"__clientSecret": "geheim"}, "__clientSecret: it takes tenantId and clientId"},
		"a certificate":          {map[string]string{"__clientId": id, "__tenantId": id, "__clientCertificate": "geheim"}, "__clientCertificate: it is not supported"},
	} {
		_, err := azure.FromEnvironment(func(setting string) (string, bool) {
			v, ok := tt.settings[strings.TrimPrefix(setting, "S")]
			return v, ok || setting == "S__accountName"
		}, "S")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
