package orchestrator

import (
	"fmt"

	"github.com/vibedata/roundhouse/internal/tenant"
)

// mayRepeat reports whether a Start for a tenant may resume a run that began for recorded. A run without a tenant is
// the platform's, or was begun by a program that did not record tenants, when the message that repeats it names one:
// it goes on, and stays without.
func mayRepeat(given, recorded string) bool { return recorded == "" || tenant.Sees(given, recorded) }

func otherTenant(id string) error {
	return fmt.Errorf("orchestration %s: %w: %w", id, ErrOtherTenant, ErrConflict)
}
