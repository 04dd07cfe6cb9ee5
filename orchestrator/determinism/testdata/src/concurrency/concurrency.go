// Package concurrency runs code in parallel.
package concurrency

import (
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/orchestrator"
)

var _ = orchestrator.NewOrchestrator("channels", func(ctx *orchestrator.Context, in int) (int, error) {
	ch := make(chan int, in) // want `^orchestrator code makes a channel: wait for futures with Await, All or Any$`
	go func() {              // want `starts a goroutine: call an activity, or use orchestrator\.Go`
		ch <- 1   // want `sends on a channel: `
		close(ch) // want `closes a channel: `
	}()
	for v := range ch { // want `ranges over a channel: `
		in += v
	}
	select { // want `selects over channels: use orchestrator\.Any over futures`
	case v := <-ch:
		in += v
	case ch <- in:
	case <-ch:
		in = <-ch // want `receives from a channel: `
	default:
	}
	return <-ch, nil // want `receives from a channel: `
})

type state struct {
	sync.Mutex
	n atomic.Int64
}

var _ = orchestrator.NewOrchestrator("locks", func(ctx *orchestrator.Context, in int) (int, error) {
	var s state
	s.Lock()         // want `calls sync\.Mutex\.Lock: orchestrator code runs alone`
	defer s.Unlock() // want `calls sync\.Mutex\.Unlock: `
	s.n.Add(1)       // want `calls atomic\.Int64\.Add: `
	var w sync.WaitGroup
	w.Go(func() {}) // want `calls sync\.WaitGroup\.Go: `
	w.Wait()        // want `calls sync\.WaitGroup\.Wait: `
	var once sync.Once
	once.Do(func() {})           // want `calls sync\.Once\.Do: `
	sync.NewCond(&s).Signal()    // want `calls sync\.NewCond: ` `calls sync\.Cond\.Signal: `
	runtime.Gosched()            // want `calls runtime\.Gosched: `
	in += runtime.NumGoroutine() // want `calls runtime\.NumGoroutine: `
	if in == 0 {
		runtime.Goexit() // want `calls runtime\.Goexit: `
	}
	return in, nil
})

var _ = orchestrator.NewOrchestrator("group", func(ctx *orchestrator.Context, in int) (int, error) {
	var g errgroup.Group
	g.Go(func() error { return nil }) // want `calls errgroup\.Group\.Go, which `
	return in, g.Wait()               // want `calls errgroup\.Group\.Wait, which `
})

// Code that is orchestrator code for two reasons is reported once.
var _ = orchestrator.NewOrchestrator("beside", func(ctx *orchestrator.Context, in int) (int, error) {
	return orchestrator.Go(ctx, func(ctx *orchestrator.Context) (int, error) {
		return runtime.NumCPU(), nil // want `calls runtime\.NumCPU: `
	}).Await()
})

var work = orchestrator.NewActivity("work", double)

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (int, error) {
	beside := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (int, error) { return work.Call(ctx, in).Await() })
	var calls []*orchestrator.Future[int]
	for i := range in {
		calls = append(calls, work.Call(ctx, i))
	}
	all, err := orchestrator.All(calls...)
	if err != nil {
		return 0, err
	}
	first := orchestrator.Any(ctx, calls[0], beside)
	return first + len(all), nil
})
