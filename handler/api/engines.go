package api

import (
	"context"

	"github.com/vibedata/roundhouse/engine"
)

// engineList is what the app consists of.
type engineList struct {
	Engines []engine.Description `json:"engines"`
	// Names are all names under which there can be history and dead letters: those of the engines, and of what else writes there.
	Names []string `json:"names"`
}

// listEngines describes the engines of the app. It costs nothing: the program knows them.
func (a *api) listEngines(context.Context, *request) (reply, error) {
	return reply{data: engineList{Engines: a.descriptions, Names: a.engines}}, nil
}
