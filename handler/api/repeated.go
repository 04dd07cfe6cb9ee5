package api

import (
	"net/http"

	"github.com/google/uuid"
)

// invocationHeader is the host's id of a request.
const invocationHeader = "X-Azure-Functions-InvocationId"

// RequestKey returns the same key for every repeat of a request by the host, which resends one without a body when
// the handler ends before the answer. It is "" for a request that did not come through a host.
func RequestKey(h http.Header) string {
	ids := h.Values(invocationHeader)
	if len(ids) != 1 {
		return ""
	}
	id, err := uuid.Parse(ids[0])
	if err != nil {
		return ""
	}
	return "invocation:" + id.String()
}
