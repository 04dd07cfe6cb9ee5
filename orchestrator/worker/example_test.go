package worker_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
)

// running is a worker at work, and what ends it.
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

// An orchestration waits for an event, which somebody sends by the runtime.
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

// Executed again under its id, an orchestration is not run again.
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

// Every working day at seven in Berlin, whichever worker is there; a slot that was missed is started up to an hour later.
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
