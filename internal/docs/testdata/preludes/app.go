package block

import (
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
)

type Steps struct{}

func Definition(*Steps) engine.Definition { return engine.Definition{} }

// The block stands here.
