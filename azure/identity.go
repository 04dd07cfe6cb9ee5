package azure

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Identity returns the credential for services other than storage: the account's own if it has one, otherwise the
// default of the environment (managed identity, workload identity, or the developer's sign-in).
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
