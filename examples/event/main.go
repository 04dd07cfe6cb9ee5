// Event waits for an approval or for a day, whichever comes first. Here the approval comes immediately; an event that
// arrives before the wait is kept.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	purchase := orchestrator.NewOrchestrator("purchase", func(ctx *orchestrator.Context, item string) (string, error) {
		approval := orchestrator.Event[string](ctx, "approved")
		if orchestrator.Any(ctx, approval, orchestrator.Timer(ctx, 24*time.Hour)) == 1 {
			return item + " expired", nil
		}
		by, err := approval.Await()
		return item + " approved by " + by, err
	})
	w, err := worker.New(ctx, worker.Config{Runtime: orchestrator.Config{Orchestrators: []orchestrator.AnyOrchestrator{purchase}}})
	if err != nil {
		log.Fatal(err)
	}
	go w.Run(ctx)
	if err := worker.Start(ctx, w, purchase, "purchase-1", "a desk"); err != nil {
		log.Fatal(err)
	}
	if err := w.Runtime().Raise(ctx, "purchase-1", "approved", "Ada", ""); err != nil {
		log.Fatal(err)
	}
	fmt.Println(worker.Result(ctx, w, purchase, "purchase-1"))
}
