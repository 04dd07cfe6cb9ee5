package orchestrator

import (
	"fmt"

	"github.com/vibedata/roundhouse/internal/tenant"
)

// mayRepeat reports whether a Start for a tenant may resume a run that began for recorded. A run without a tenant is
// the platform's. It may also have been begun by a program that did not record tenants, although the message that
// repeats it names one: it continues without a tenant.
func mayRepeat(given, recorded string) bool { return recorded == "" || tenant.Sees(given, recorded) }

// checkSame returns ErrOtherWork if a run is not the one that a Start requests.
func (s Start) checkSame(carry []byte) error {
	if s.Same == nil || s.Same(carry) {
		return nil
	}
	return fmt.Errorf("orchestration %s: %w: %w", s.ID, ErrOtherWork, ErrConflict)
}

func otherTenant(id string) error {
	return fmt.Errorf("orchestration %s: %w: %w", id, ErrOtherTenant, ErrConflict)
}
