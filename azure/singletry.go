package azure

import (
	"errors"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/internal/storage"
)

// singleTry makes the SDK send a request once if its context asks for that.
type singleTry struct{}

// Do sends one request.
func (singleTry) Do(req *policy.Request) (*http.Response, error) {
	if ctx := req.Raw().Context(); storage.SingleTry(ctx) {
		req = req.WithContext(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1, TryTimeout: sendTimeout}))
	}
	return req.Next()
}

// notApplied reports whether a try certainly had no effect.
func notApplied(resp *http.Response, err error) bool {
	if resp == nil {
		return unreachable(err)
	}
	return kindOf(resp.StatusCode, resp.Header.Get("x-ms-error-code")) == storage.ErrThrottled
}

// unreachable reports that no connection was made, so that no request was sent.
func unreachable(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}
