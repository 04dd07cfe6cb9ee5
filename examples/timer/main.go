// Timer counts down with durable timers: a restarted process continues where the count was. The storage here is memory;
// with the stores of package azure, the same orchestrator may sleep for months.
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
	say := orchestrator.NewActivity("say", func(_ context.Context, n int) (bool, error) {
		fmt.Println(n)
		return true, nil
	})
	countdown := orchestrator.NewOrchestrator("countdown", func(ctx *orchestrator.Context, from int) (string, error) {
		for n := from; n > 0; n-- {
			if _, err := say.Call(ctx, n).Await(); err != nil {
				return "", err
			}
			if err := ctx.Sleep(100 * time.Millisecond); err != nil {
				return "", err
			}
		}
		return "Liftoff!", nil
	})
	w, err := worker.New(ctx, worker.Config{Runtime: orchestrator.Config{
		Orchestrators: []orchestrator.AnyOrchestrator{countdown}, Activities: []orchestrator.AnyActivity{say}}})
	if err != nil {
		log.Fatal(err)
	}
	go w.Run(ctx)
	fmt.Println(worker.Execute(ctx, w, countdown, "countdown-1", 3))
}
