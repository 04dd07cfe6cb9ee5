package azure

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/internal/storage"
)

// singleTry makes the SDK send a request once if its context asks for that.
type singleTry struct{}

// Do sends one request.
func (singleTry) Do(req *policy.Request) (*http.Response, error) {
	if ctx := req.Raw().Context(); storage.SingleTry(ctx) {
		req = req.WithContext(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}))
	}
	return req.Next()
}
