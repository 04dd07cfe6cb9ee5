// Package shared changes state that all orchestrations share.
package shared

import (
	"net/http"

	"github.com/vibedata/roundhouse/orchestrator"
)

type settings struct {
	limit int
	tags  map[string]string
}

var (
	count   int
	config  settings
	pointer = &settings{}
	cache   = map[string]int{}
	list    = []int{1}
)

var _ = orchestrator.NewOrchestrator("shared", func(ctx *orchestrator.Context, in int) (int, error) {
	count = in                // want `^orchestrator code writes the package variable shared\.count: keep it in a local variable`
	count++                   // want `writes the package variable shared\.count: `
	config.limit += in        // want `writes the package variable shared\.config: `
	config.tags["a"] = "b"    // want `writes the package variable shared\.config: `
	pointer.limit = in        // want `writes the package variable shared\.pointer: `
	*pointer = settings{}     // want `writes the package variable shared\.pointer: `
	cache["in"] = in          // want `writes the package variable shared\.cache: `
	delete(cache, "in")       // want `writes the package variable shared\.cache: `
	clear(cache)              // want `writes the package variable shared\.cache: `
	copy(list[0:], []int{in}) // want `writes the package variable shared\.list: `
	(list)[0], in = in, 2     // want `writes the package variable shared\.list: `
	for count = range in {    // want `writes the package variable shared\.count: `
	}
	http.DefaultClient = nil // want `writes the package variable http\.DefaultClient: ` `uses http\.DefaultClient: `
	return in, nil
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (int, error) {
	count := in
	count++
	local := settings{tags: map[string]string{}}
	local.tags["a"] = "b"
	delete(local.tags, "a")
	return count + config.limit + cache["in"], nil
})
