package concurrency

import "context"

func double(_ context.Context, in int) (int, error) { // want double:`makes a channel: `
	done := make(chan int)
	go func() { done <- 2 * in }()
	return <-done, nil
}
