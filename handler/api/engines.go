package api

import (
	"context"

	"github.com/vibedata/roundhouse/engine"
)

// engineList lists the engines of the app.
type engineList struct {
	Engines []engine.Description `json:"engines"`
	// Names are all names with possible history and dead letters: those of the engines, and of other writers.
	Names []string `json:"names"`
}

// listEngines describes the engines of the app. It costs nothing: the program knows them.
func (a *api) listEngines(context.Context, *request) (reply, error) {
	return reply{data: engineList{Engines: a.descriptions, Names: a.engines}}, nil
}
