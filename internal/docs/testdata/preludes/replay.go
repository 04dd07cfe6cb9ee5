package block

import (
	"context"

	"github.com/vibedata/roundhouse/orchestrator"
)

// The block stands here.
