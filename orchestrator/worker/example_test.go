package worker_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
)

// running starts a worker, and returns a function that stops it.
func running(c worker.Config) (*worker.Worker, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w, err := worker.New(ctx, c)
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-ended; err != nil {
			log.Fatal(err)
		}
	}
}

// An orchestration waits for an event, which a caller sends through the runtime.
func Example() {
	purchase := orchestrator.NewOrchestrator("purchase", func(ctx *orchestrator.Context, item string) (string, error) {
		by, err := orchestrator.Event[string](ctx, "approved").Await()
		return item + ", approved by " + by, err
	})
	w, stop := running(worker.Config{Runtime: orchestrator.Config{Orchestrators: []orchestrator.AnyOrchestrator{purchase}}})
	defer stop()
	ctx := context.Background()
	if err := worker.Start(ctx, w, purchase, "purchase-1", "a desk"); err != nil {
		log.Fatal(err)
	}
	if err := w.Runtime().Raise(ctx, "purchase-1", "approved", "Ada", ""); err != nil {
		log.Fatal(err)
	}
	fmt.Println(worker.Result(ctx, w, purchase, "purchase-1"))
	// Output: a desk, approved by Ada <nil>
}

// A second Execute with the same id does not run the orchestration again.
func ExampleExecute() {
	greet := orchestrator.NewActivity("greet", func(_ context.Context, name string) (string, error) {
		fmt.Println("greeting", name)
		return "Hello, " + name, nil
	})
	hello := orchestrator.NewOrchestrator("hello", func(ctx *orchestrator.Context, name string) (string, error) { return greet.Call(ctx, name).Await() })
	w, stop := running(worker.Config{Runtime: orchestrator.Config{
		Orchestrators: []orchestrator.AnyOrchestrator{hello}, Activities: []orchestrator.AnyActivity{greet}}})
	defer stop()
	for range 2 {
		fmt.Println(worker.Execute(context.Background(), w, hello, "hello-1", "World"))
	}
	// Output:
	// greeting World
	// Hello, World <nil>
	// Hello, World <nil>
}

// Every working day at seven in Berlin, on any one worker; a missed slot is started up to an hour later.
func ExampleSchedule() {
	report := orchestrator.NewOrchestrator("report", func(ctx *orchestrator.Context, kind string) (string, error) { return kind + " by " + ctx.ID(), nil })
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	_, stop := running(worker.Config{
		Runtime: orchestrator.Config{Orchestrators: []orchestrator.AnyOrchestrator{report}},
		Schedules: []worker.Schedule{
			{Name: "morning-report", Cron: "0 0 7 * * 1-5", Location: berlin, CatchUp: time.Hour, Orchestrator: "report", Input: []byte(`"short"`)},
		},
	})
	stop()
	// Output:
}
