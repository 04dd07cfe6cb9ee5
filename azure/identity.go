package azure

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity is the credential for services beside storage: the account's own when it has one, else the default of the
// environment (managed identity, workload identity, or the developer's sign-in).
func (a Account) Identity() (azcore.TokenCredential, error) {
	if a.Credential != nil {
		return a.Credential, nil
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("find an identity in the environment: %w", err)
	}
	return credential, nil
}
