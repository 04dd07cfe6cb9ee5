//go:build !unix

package npm

import (
	"context"
	"os"
)

// lock does nothing where there is no flock: of two first installations at once, one may fail there.
func lock(context.Context, string) (held *os.File, err error) { return nil, nil }
