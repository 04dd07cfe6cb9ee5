package azure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/vibedata/roundhouse/internal/entraid"
	"github.com/vibedata/roundhouse/internal/storage"
)

// FromEnvironment reads a storage connection as the Functions host does: the setting name holds a connection string,
// or, when that is missing or empty, these settings describe an identity:
//
//   - name__accountName, or name__blobServiceUri, name__queueServiceUri and name__tableServiceUri: the account. A
//     missing URI is derived from the account's name.
//   - name__credential: "managedidentity", "workloadidentity", or empty for the default chain of azidentity
//     (environment, workload identity, managed identity, developer tools).
//   - name__clientId, name__managedIdentityResourceId or name__managedIdentityObjectId: the user-assigned identity. The
//     last one requires name__credential.
//   - name__tenantId: the tenant of the identity; with name__clientId and name__clientSecret, an application.
//
// The host ignores the letter case of the part after the name. So does this function, as far as a lookup of single
// names can: it tries the spelling above, lower case, upper case, and a capital. White space around values is ignored.
//
// lookup is os.LookupEnv or a function like it. The error names every bad setting together and quotes no value that may
// hold a key.
func FromEnvironment(lookup func(string) (string, bool), name string) (Account, error) {
	get := func(setting string) string {
		for _, spelling := range spellings(name, setting) {
			if v, _ := lookup(spelling); strings.TrimSpace(v) != "" {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	if s := get(""); s != "" {
		a, err := FromConnectionString(s)
		if err != nil {
			return Account{}, fmt.Errorf("setting %s: %w", name, err)
		}
		return a, nil
	}
	a := Account{Name: get("__accountName"), pool: newPool(serviceIdle)}
	var errs []error
	if a.Name != "" && !validName(a.Name) {
		errs = append(errs, fmt.Errorf("setting %s__accountName: use 3 to 24 lower-case letters and digits", name))
	}
	uris := 0
	for _, service := range a.services() {
		setting := "__" + service.name + "ServiceUri"
		uri := get(setting)
		switch {
		case uri != "":
			uris++
		case a.Name != "":
			uri = "https://" + a.Name + "." + service.name + ".core.windows.net"
		default:
			errs = append(errs, fmt.Errorf("setting %s%s is missing: set it, or %s__accountName, or %s to a connection string", name, setting, name, name))
			continue
		}
		var err error
		if *service.endpoint, err = cleanEndpoint(uri, true); err != nil {
			errs = append(errs, fmt.Errorf("setting %s%s: %w", name, setting, err))
		}
	}
	if a.Name == "" && uris == 0 {
		errs = []error{fmt.Errorf("setting %s is missing: set it to a connection string (UseDevelopmentStorage=true for the emulator), or set %s__accountName for an identity", name, name)}
	}
	credential, err := identity{kind: get("__credential"), clientID: get("__clientId"), resourceID: get("__managedIdentityResourceId"), objectID: get("__managedIdentityObjectId"),
		tenantID: get("__tenantId"), secret: get("__clientSecret"), certificate: get("__clientCertificate") != ""}.credential(name)
	if err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return Account{}, err
	}
	a.Credential = tokens{credential}
	return a, nil
}

// tokens marks the failure to get a token: no request was sent then.
type tokens struct{ azcore.TokenCredential }

// GetToken calls the credential.
func (t tokens) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := t.TokenCredential.GetToken(ctx, options)
	if err != nil {
		return token, &failure{Kind: storage.ErrDenied, cause: err}
	}
	return token, nil
}

// spellings returns the names under which a setting is looked up.
func spellings(name, setting string) []string {
	if setting == "" {
		return []string{name, strings.ToUpper(name)}
	}
	word := strings.TrimPrefix(setting, "__")
	return []string{name + setting, name + "__" + strings.ToUpper(word[:1]) + word[1:], name + strings.ToLower(setting), name + strings.ToUpper(setting),
		strings.ToUpper(name + setting), strings.ToLower(name + setting)}
}

// identity holds the settings of the credential, as the host's SDK reads them.
type identity struct {
	kind, clientID, resourceID, objectID, tenantID, secret string
	certificate                                            bool
}

// credential makes the credential; it requests no token yet. It uses azidentity's own pool, since the token services
// are not storage.
func (i identity) credential(name string) (azcore.TokenCredential, error) {
	wrong := func(setting, text string) error { return fmt.Errorf("setting %s__%s: %s", name, setting, text) }
	for _, id := range []struct {
		setting string
		value   *string
	}{{"clientId", &i.clientID}, {"managedIdentityObjectId", &i.objectID}} {
		if *id.value == "" {
			continue
		}
		parsed, err := entraid.Parse(*id.value)
		if err != nil {
			return nil, wrong(id.setting, err.Error())
		}
		*id.value = parsed
	}
	i.tenantID = entraid.Normal(i.tenantID)
	named := 0
	for _, id := range []string{i.clientID, i.resourceID, i.objectID} {
		if id != "" {
			named++
		}
	}
	kind := strings.ToLower(i.kind)
	switch {
	case named > 1:
		return nil, wrong("clientId", "it names the identity together with managedIdentityResourceId or managedIdentityObjectId: set one of them")
	case i.certificate:
		return nil, wrong("clientCertificate", "it is not supported: use a managed identity, or clientSecret")
	case kind == "managedidentity":
		return i.managed()
	case kind == "workloadidentity":
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientID: i.clientID, TenantID: i.tenantID})
	case kind != "":
		return nil, wrong("credential", `use "managedidentity" or "workloadidentity", or leave it out`)
	case i.objectID != "":
		return nil, wrong("managedIdentityObjectId", `it takes credential "managedidentity"`)
	case i.secret != "":
		if i.tenantID == "" || i.clientID == "" {
			return nil, wrong("clientSecret", "it takes tenantId and clientId")
		}
		return azidentity.NewClientSecretCredential(i.tenantID, i.clientID, i.secret, nil)
	case named == 0:
		return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{TenantID: i.tenantID})
	}
	return i.chain()
}

func (i identity) managed() (azcore.TokenCredential, error) {
	options := &azidentity.ManagedIdentityCredentialOptions{}
	switch {
	case i.clientID != "":
		options.ID = azidentity.ClientID(i.clientID)
	case i.resourceID != "":
		options.ID = azidentity.ResourceID(i.resourceID)
	case i.objectID != "":
		options.ID = azidentity.ObjectID(i.objectID)
	}
	return azidentity.NewManagedIdentityCredential(options)
}

// chain returns the default chain with the named managed identity, which azidentity's own chain reads from
// AZURE_CLIENT_ID only.
func (i identity) chain() (azcore.TokenCredential, error) {
	var sources []azcore.TokenCredential
	if c, err := azidentity.NewEnvironmentCredential(nil); err == nil {
		sources = append(sources, c)
	}
	if c, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientID: i.clientID, TenantID: i.tenantID}); err == nil {
		sources = append(sources, c)
	}
	managed, err1 := i.managed()
	cli, err2 := azidentity.NewAzureCLICredential(&azidentity.AzureCLICredentialOptions{TenantID: i.tenantID})
	developer, err3 := azidentity.NewAzureDeveloperCLICredential(&azidentity.AzureDeveloperCLICredentialOptions{TenantID: i.tenantID})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return azidentity.NewChainedTokenCredential(append(sources, managed, cli, developer), nil)
}
