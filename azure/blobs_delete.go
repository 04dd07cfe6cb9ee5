package azure

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/blobs"
)

// DeleteContainer deletes a container with its blobs. It is for tools that make their own containers, and not part of
// blobs.Store.
func (a *Blobs) DeleteContainer(ctx context.Context, container string) error {
	err := cmp.Or(ctx.Err(), blobs.CheckContainer(container))
	if err == nil {
		_, err = a.service.NewContainerClient(container).Delete(ctx, nil)
		err = classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete container %.64s: %w", container, err)
	}
	return nil
}
