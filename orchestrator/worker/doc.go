// Package worker runs orchestrations without a Functions host: it is what a program needs that uses the runtime as a
// library. A Worker takes the messages of the runtime's queues, drives the orchestrations that they are for, runs
// activities, starts orchestrations on schedules, and wakes those whose messages were lost.
//
//	w, err := worker.New(ctx, worker.Config{Runtime: orchestrator.Config{
//		Orchestrators: []orchestrator.AnyOrchestrator{hello},
//		Activities:    []orchestrator.AnyActivity{greet},
//	}})
//	...
//	go w.Run(ctx)
//	greeting, err := worker.Execute(ctx, w, hello, "hello-1", "World")
//
// Without stores, everything is kept in memory and ends with the process. With those of package azure, any number of
// workers on any number of machines share the orchestrations of one storage account; New prepares the storage, and a
// program that only starts orchestrations and sends them events needs no Run.
//
// # Promises
//
// A message is deleted last, when what it brought is durable and its orchestration has come to rest. While it is worked on
// it stays hidden from other workers, and when its worker dies it comes again after Config.Visibility. So a worker may be
// killed at any time: orchestrations go on where their last round ended, and an activity that ran may run once more.
//
// # Messages that fail
//
// A message that fails is received again, later each time, until it has been Config.MaxDequeueCount times. Not counted is what
// passes by itself: storage that is busy or away, and an orchestration that another worker drives. Then activities fail with
// their last error, and their orchestration decides what follows; a signal is moved to the dead-letter queue, which is named
// like its queue with "-dead-letters" at the end. It stays there for a person, who sends it again when the cause is mended.
// What cannot be understood goes there at once.
//
// A message whose process died each time may be the cause, or may have been at work beside the cause. So it is moved to the
// poison queue ("-poison"), from which a worker takes one message at a time. There it comes to its rest as ever; if the process
// dies twice more, its activities fail, or its orchestration ends as Failed, so that it does not take down the next process.
//
// # Storage
//
// Beside the runtime's storage, the package uses a poison queue and a dead-letter queue for each of the runtime's three
// queues, and the table of package hostlock, with the locks "sweeper" and "retention". A schedule keeps nothing: each of its
// slots is an orchestration with an id made of the slot, so that several workers start it once.
package worker
