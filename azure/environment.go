package azure

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/vibedata/roundhouse/internal/storage"
)

// FromEnvironment reads a storage connection as the Functions host does: the setting name holds a connection string,
// or, when that is missing or empty, these settings describe an identity:
//
//   - name__accountName, or name__blobServiceUri, name__queueServiceUri and name__tableServiceUri: which account. A
//     missing URI is made of the account's name.
//   - name__credential: "managedidentity", "workloadidentity", or nothing for the default chain of azidentity
//     (environment, workload identity, managed identity, developer tools).
//   - name__clientId: which user-assigned identity.
//
// lookup is os.LookupEnv or its like. The error names every bad setting at once and shows no value of one that may
// hold a key.
func FromEnvironment(lookup func(string) (string, bool), name string) (Account, error) {
	get := func(setting string) string {
		v, _ := lookup(name + setting)
		return v
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
	credential, err := a.identity(get("__credential"), get("__clientId"))
	if err != nil {
		errs = append(errs, fmt.Errorf("setting %s__credential: %w", name, err))
	}
	if err := errors.Join(errs...); err != nil {
		return Account{}, err
	}
	a.Credential = tokens{credential}
	return a, nil
}

// tokens marks the failure to get a token: nothing was sent then.
type tokens struct{ azcore.TokenCredential }

// GetToken asks the credential.
func (t tokens) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := t.TokenCredential.GetToken(ctx, options)
	if err != nil {
		return token, &failure{Kind: storage.ErrDenied, cause: err}
	}
	return token, nil
}

// identity makes the credential; it does not ask for a token yet. It has its own pool from azidentity, since the
// services that give tokens are not storage.
func (a Account) identity(kind, clientID string) (azcore.TokenCredential, error) {
	switch kind {
	case "managedidentity":
		options := &azidentity.ManagedIdentityCredentialOptions{}
		if clientID != "" {
			options.ID = azidentity.ClientID(clientID)
		}
		return azidentity.NewManagedIdentityCredential(options)
	case "workloadidentity":
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientID: clientID})
	case "":
		return azidentity.NewDefaultAzureCredential(nil)
	}
	return nil, errors.New(`use "managedidentity" or "workloadidentity", or leave it out`)
}
