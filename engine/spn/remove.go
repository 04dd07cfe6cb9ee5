package spn

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// RemoveOutput lists the outcome of the replaced passwords.
type RemoveOutput struct {
	// Removed are the key ids that were removed from Entra ID.
	Removed []string `json:"removed,omitempty"`
	// Kept are those whose version was enabled again.
	Kept []Password `json:"kept,omitempty"`
}

// InUseError means that passwords were kept because a consumer objected.
type InUseError struct {
	ApplicationID string
	Kept          []Password
}

// Error names the passwords and the remedy.
func (e *InUseError) Error() string {
	var kept []string
	for _, p := range e.Kept {
		kept = append(kept, fmt.Sprintf("%s (version %s)", p.KeyID, p.Version))
	}
	return fmt.Sprintf("passwords of application %s were not removed, because their versions were enabled again: %s. "+
		"Have those who use them take the new one, and retry this: it disables them again and removes them after the same time; or leave it to the next rotation, which does so, too",
		e.ApplicationID, strings.Join(kept, ", "))
}

// Remove removes the passwords that Retire has found replaced from Entra ID, which cannot be undone: those whose
// version was disabled for Config.RemoveAfter, without a change in between, and those without a stored value. A
// password whose version was enabled again is kept, and one whose version was disabled later is left to whoever did
// that. Errors are those of Retire.
func (s *Steps) Remove(ctx context.Context, in RetireInput) (RemoveOutput, error) {
	var out RemoveOutput
	r, err := s.look(ctx, in)
	if err != nil {
		return out, fmt.Errorf("remove: %w", err)
	}
	if err := r.checkReplacement(); err != nil {
		return out, fmt.Errorf("remove what %s version %s replaces: %w", in.SecretName, in.Version, err)
	}
	for _, p := range r.passwords {
		if !r.replaced(p) {
			continue
		}
		v, stored := versionOf(r.versions, p.KeyID)
		if v.Enabled {
			out.Kept = append(out.Kept, Password{p.KeyID, v.Version})
			continue
		}
		if stored && r.disabledLately(v.Updated) {
			continue
		}
		if err := s.config.Directory.RemovePassword(ctx, in.ApplicationID, p.KeyID); err != nil {
			return out, fmt.Errorf("remove: %w", err)
		}
		out.Removed = append(out.Removed, p.KeyID)
	}
	return out, nil
}

// clockSlack bounds the difference of the secret store's clock.
const clockSlack = 10 * time.Minute

// disabledLately reports whether the time for objections is not over.
func (s *Steps) disabledLately(changed time.Time) bool {
	slack := min(clockSlack, s.config.RemoveAfter/2)
	return s.config.Now().Add(slack).Before(changed.Add(s.config.RemoveAfter))
}
