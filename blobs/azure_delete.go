package blobs

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/internal/account"
)

// DeleteContainer deletes a container with its blobs. It is for tools that make containers of their own, and not part of
// Store.
func (a *Azure) DeleteContainer(ctx context.Context, container string) error {
	err := cmp.Or(ctx.Err(), account.CheckName("container", container))
	if err == nil {
		_, err = a.service.NewContainerClient(container).Delete(ctx, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete container %.64s: %w", container, err)
	}
	return nil
}
