package spn

import (
	"testing"

	"github.com/vibedata/roundhouse/engine/enginetest"
)

// The schema for forms has exactly the fields of messages.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	enginetest.CheckInputSchema[Input](t, inputSchema)
}
