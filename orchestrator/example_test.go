package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// newRuntime is a runtime in memory. Without queues, an orchestration runs within Runtime.Run; a program that also has
// timers and events uses the package worker, or is an app of the Functions host.
func newRuntime(orchestrators []orchestrator.AnyOrchestrator, activities ...orchestrator.AnyActivity) *orchestrator.Runtime {
	runtime, err := orchestrator.New(orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Orchestrators: orchestrators, Activities: activities})
	if err == nil {
		err = runtime.Prepare(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	return runtime
}

func run(r *orchestrator.Runtime, id, name string, input any) orchestrator.Outcome {
	text, err := json.Marshal(input)
	if err != nil {
		log.Fatal(err)
	}
	out, err := r.Run(context.Background(), orchestrator.Start{ID: id, Orchestrator: name, Input: text})
	if err != nil {
		log.Fatal(err)
	}
	return out
}

// An orchestrator calls activities; run again under its id, its recorded outcome is returned.
func Example() {
	greet := orchestrator.NewActivity("greet", func(_ context.Context, name string) (string, error) {
		fmt.Println("greeting", name)
		return "Hello, " + name, nil
	})
	hello := orchestrator.NewOrchestrator("hello", func(ctx *orchestrator.Context, name string) (string, error) { return greet.Call(ctx, name).Await() })
	r := newRuntime([]orchestrator.AnyOrchestrator{hello}, greet)
	for range 2 {
		out := run(r, "hello-1", "hello", "World")
		fmt.Println(out.Status, string(out.Output))
	}
	// Output:
	// greeting World
	// Completed "Hello, World"
	// Completed "Hello, World"
}

// Activities run in parallel; All waits for them.
func ExampleAll() {
	square := orchestrator.NewActivity("square", func(_ context.Context, n int) (int, error) { return n * n, nil })
	sum := orchestrator.NewOrchestrator("sum", func(ctx *orchestrator.Context, n int) (int, error) {
		var calls []*orchestrator.Future[int]
		for i := range n {
			calls = append(calls, square.Call(ctx, i))
		}
		squares, err := orchestrator.All(calls...)
		total := 0
		for _, s := range squares {
			total += s
		}
		return total, err
	})
	out := run(newRuntime([]orchestrator.AnyOrchestrator{sum}, square), "sum-1", "sum", 5)
	fmt.Println(string(out.Output))
	// Output: 30
}

// Any returns which of several waits ended first: here, a call has a time limit.
func ExampleAny() {
	slow := orchestrator.NewActivity("slow", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done() // no answer comes
		return "", ctx.Err()
	})
	ask := orchestrator.NewOrchestrator("ask", func(ctx *orchestrator.Context, _ struct{}) (string, error) {
		answer := slow.Call(ctx, struct{}{})
		if orchestrator.Any(ctx, answer, orchestrator.Timer(ctx, 10*time.Millisecond)) == 1 {
			return "no answer", nil
		}
		return answer.Await()
	})
	out := run(newRuntime([]orchestrator.AnyOrchestrator{ask}, slow), "ask-1", "ask", struct{}{})
	fmt.Println(string(out.Output))
	// Output: "no answer"
}

// A failed call is retried according to its Retry, unless the error is marked as permanent.
func ExamplePermanent() {
	tries := 0
	pay := orchestrator.NewActivity("pay", func(context.Context, struct{}) (struct{}, error) {
		if tries++; tries == 1 {
			return struct{}{}, errors.New("the bank is busy")
		}
		return struct{}{}, orchestrator.Permanent(errors.New("the card was declined"))
	}, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 5, FirstInterval: time.Millisecond}))
	order := orchestrator.NewOrchestrator("order", func(ctx *orchestrator.Context, _ struct{}) (struct{}, error) {
		return pay.Call(ctx, struct{}{}).Await()
	})
	out := run(newRuntime([]orchestrator.AnyOrchestrator{order}, pay), "order-1", "order", struct{}{})
	fmt.Println(out.Status, out.Failure.Message)
	// Output: Failed activity pay (attempt 2): the card was declined
}
