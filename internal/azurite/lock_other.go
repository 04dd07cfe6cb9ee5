//go:build !unix

package azurite

import "os"

// lock does nothing where there is no flock: two first installations at once may disturb each other there.
func lock(*os.File) (unlock func(), err error) { return func() {}, nil }
