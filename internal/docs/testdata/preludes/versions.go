package block

import "github.com/vibedata/roundhouse/orchestrator"

type Order struct{ ID string }

// The block stands here.
