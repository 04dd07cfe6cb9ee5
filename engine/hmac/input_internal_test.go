package hmac

import (
	"testing"

	"github.com/vibedata/roundhouse/engine/enginetest"
)

// The schema for forms names what messages may have, and no more.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	enginetest.CheckInputSchema[inputDocument](t, inputSchema)
}
