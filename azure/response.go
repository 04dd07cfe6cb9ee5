package azure

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/internal/storage"
)

// recordResponse fills the storage.Response of a request's context with every answer.
type recordResponse struct{}

// Do sends one try.
func (recordResponse) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil {
		return resp, err
	}
	if date, dateErr := http.ParseTime(resp.Header.Get("Date")); dateErr == nil {
		storage.RecordResponse(req.Raw().Context(), date, resp.Header.Get("ETag"))
	}
	return resp, err
}
