// Package logging logs past the orchestration's logger.
package logging

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/vibedata/roundhouse/orchestrator"
)

var _ = orchestrator.NewOrchestrator("logging", func(c *orchestrator.Context, in int) (int, error) {
	slog.Info("started", "in", in)                                        // want `^orchestrator code calls slog\.Info: use ctx\.Logger\(\), which is silent in a replay$`
	slog.ErrorContext(context.Background(), "broken", slog.Int("in", in)) // want `calls slog\.ErrorContext: ` `calls context\.Background: `
	slog.With("in", in).Warn("so so")                                     // want `calls slog\.With: `
	slog.Default().Debug("detail")                                        // want `calls slog\.Default: `
	log.Printf("in %d", in)                                               // want `calls log\.Printf: `
	fmt.Println(in)                                                       // want `calls fmt\.Println: `
	println(in)                                                           // want `prints: `
	c.Logger().Info("fine", slog.Group("input", "in", in), slog.String("text", fmt.Sprint(in)))
	return in, nil
})
