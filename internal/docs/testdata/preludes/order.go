package block

import (
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

type (
	Line  struct{ Article string }
	Order struct{ Lines []Line }
)

// The block stands here.
