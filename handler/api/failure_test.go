package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/tables"
)

// Slow storage is answered with 503, never with 409, which means that the orchestration exists.
func TestStorageFailures(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"fenced":          fmt.Errorf("orchestration a: %w: %w", orchestrator.ErrElsewhere, nodes.ErrFenced),
		"throttled":       fmt.Errorf("orchestration a: %w", tables.ErrThrottled),
		"outcome unknown": fmt.Errorf("orchestration a: %w", tables.ErrOutcomeUnknown),
		"lost race, unknown": fmt.Errorf("orchestration a: %w: %w",
			orchestrator.ErrElsewhere, tables.ErrOutcomeUnknown),
	} {
		f := failureOf(err, time.Now())
		if f.status != http.StatusServiceUnavailable || f.Code != codeStorageUnavailable || f.header["Retry-After"] == "" {
			t.Errorf("%s: %d %s %v, want 503 %s with Retry-After", name, f.status, f.Code, f.header, codeStorageUnavailable)
		}
	}
}
