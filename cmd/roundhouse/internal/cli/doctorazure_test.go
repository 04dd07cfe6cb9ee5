package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/functionapp"
)

type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

const ordersID = "/subscriptions/0a/resourceGroups/g/providers/Microsoft.Web/sites/orders"

// resourceManager returns an Azure with one app with the given host name, and nothing else of it.
func resourceManager(t *testing.T, host string) func(string) (*functionapp.Client, error) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case ordersID:
			fmt.Fprintf(w, `{"identity":{"principalId":"p1"},"properties":{"state":"Running","httpsOnly":true,"defaultHostName":%q,"functionAppConfig":{"runtime":{"name":"custom"}}}}`, host)
		case ordersID + "/config/appsettings/list":
			fmt.Fprint(w, `{"properties":{"AzureWebJobsStorage__accountName":"acct1","ROUNDHOUSE_CONTEXT":"publisher","ROUNDHOUSE_ALERTS_KEY":"@Microsoft.KeyVault(x)","OTHER":"o"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return func(string) (*functionapp.Client, error) {
		return functionapp.New(functionapp.Config{Credential: token{}, Endpoint: server.URL, Transport: server.Client()})
	}
}

// With an app in Azure, doctor examines that app and its storage, or reports that other ones were selected.
func TestDoctorOfAnAppInAzure(t *testing.T) {
	t.Parallel()
	w, connection := down(t)
	for name, tt := range map[string]struct {
		host string
		args []string
		code int
		want []string
		lack []string
	}{
		"its address":   {"127.0.0.1", []string{"--app", ordersID, "--storage", connection}, 1, []string{"ok    azure app", "fail  same app", "the storage account of --storage is not that of orders"}, []string{"the address http"}},
		"another app's": {"orders.azurewebsites.net", []string{"--app", ordersID, "--storage", connection}, 1, []string{"is none of orders", "leave --url and ROUNDHOUSE_URL out"}, nil},
		"by its name":   {"127.0.0.1", []string{"--app", "orders", "--group", "g", "--subscription", "0a", "--storage", connection}, 1, []string{"ok    azure app"}, nil},
		"no such app":   {"", []string{"--app", ordersID + "2"}, 1, []string{"fail  azure ", "404", "1 of 1 checks failed"}, []string{"storage", "app answers"}},
		"half a name":   {"", []string{"--app", "orders"}, 2, []string{"--app NAME needs --group and --subscription"}, nil},
		"no app":        {"", []string{"--app", "/subscriptions/0a"}, 2, []string{"no id of a Function App"}, nil},
	} {
		m, out, errs := w.main(nil)
		m.Azure = resourceManager(t, tt.host)
		var asked []string
		m.Needs = func(_ context.Context, p Program) (functionapp.Needs, error) {
			asked = p.Env
			return functionapp.Needs{HostFile: json.RawMessage(`{}`)}, nil
		}
		code := m.Run(t.Context(), append([]string{"doctor"}, tt.args...))
		text := out.String() + errs.String()
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(text, want) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s", name, code, tt.code, want, text)
			}
		}
		for _, lack := range tt.lack {
			if strings.Contains(text, lack) {
				t.Errorf("%s: %q in\n%s", name, lack, text)
			}
		}
		if tt.host != "" {
			// The program is asked with the plain settings only, and with no other environment.
			if diff := cmp.Diff([]string{"ROUNDHOUSE_CONTEXT=publisher"}, asked); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// The program's requirements may be unknown, or it may refuse the settings.
func TestDoctorAsksTheProgram(t *testing.T) {
	t.Parallel()
	w, connection := down(t)
	for want, err := range map[string]error{
		"warn  azure program":             Mark(ErrMissing, errors.New("there is no module here")),
		"fail  azure program":             errors.New("ROUNDHOUSE_HMAC_GRACE: set a Go duration"),
		"give --program dist/handler, or": errors.New("oh"),
	} {
		m, out, _ := w.main(nil)
		m.Azure = resourceManager(t, "127.0.0.1")
		m.Needs = func(context.Context, Program) (functionapp.Needs, error) { return functionapp.Needs{}, err }
		m.Run(t.Context(), []string{"doctor", "--app", ordersID, "--storage", connection})
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), err.Error()) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
