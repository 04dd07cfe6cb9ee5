// Hello runs an orchestration of one activity, in memory: the smallest possible program.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	greet := orchestrator.NewActivity("greet", func(_ context.Context, name string) (string, error) {
		return "Hello, " + name + "!", nil
	})
	hello := orchestrator.NewOrchestrator("hello", func(ctx *orchestrator.Context, name string) (string, error) {
		return greet.Call(ctx, name).Await()
	})
	w, err := worker.New(ctx, worker.Config{Runtime: orchestrator.Config{
		Orchestrators: []orchestrator.AnyOrchestrator{hello},
		Activities:    []orchestrator.AnyActivity{greet},
	}})
	if err != nil {
		log.Fatal(err)
	}
	go w.Run(ctx)
	greeting, err := worker.Execute(ctx, w, hello, "hello-1", "World")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(greeting)
}
