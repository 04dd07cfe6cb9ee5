package secrets

import (
	"context"
	"fmt"
	"slices"
)

// Newest returns the value of the newest enabled version of a secret, or ErrNoVersion. The caller clears it.
func Newest(ctx context.Context, vault interface {
	Store
	Reader
}, name string) ([]byte, error) {
	versions, err := vault.Versions(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(versions) {
		if v.Enabled {
			return vault.Value(ctx, name, v.Version)
		}
	}
	return nil, fmt.Errorf("secret %s: %w", name, ErrNoVersion)
}
