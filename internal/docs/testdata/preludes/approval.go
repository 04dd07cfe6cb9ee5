package block

import (
	"encoding/json"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

type Decision struct{ Approved bool }

func ask(ctx *orchestrator.Context, r engine.Request[string], proposal string, form json.RawMessage) (Decision, error) {
	// The block stands here.
	return answer.Output, err
}
