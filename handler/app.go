package main

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/handler/trigger"
)

// app is the program behind the server: what wire has built out of the settings.
type app struct {
	// Queues are the queue functions of the deployment context, by function name.
	Queues map[string]trigger.Queue
	// Timers are the timer functions of the deployment context, by function name.
	Timers map[string]trigger.Timer
	// API registers the HTTP API's routes, all below /api/.
	API func(e *echo.Echo) error
	// Start makes the program ready before the server listens: tables and queues that are missing, for example. It is
	// the first that may go to the network: wire only builds. nil means that there is nothing to do.
	Start func(ctx context.Context) error
	// Close releases what wire has built, when the server has stopped; nil means that there is nothing to release.
	Close func()
}
