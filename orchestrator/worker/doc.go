// Package worker runs orchestrations without a Functions host, for programs that use the runtime as a library. A
// Worker receives the messages of the runtime's queues, drives their orchestrations, runs activities, starts
// orchestrations on schedules, and wakes orchestrations whose messages were lost.
//
//	w, err := worker.New(ctx, worker.Config{Runtime: orchestrator.Config{
//		Orchestrators: []orchestrator.AnyOrchestrator{hello},
//		Activities:    []orchestrator.AnyActivity{greet},
//	}})
//	...
//	go w.Run(ctx)
//	greeting, err := worker.Execute(ctx, w, hello, "hello-1", "World")
//
// Without stores, everything is kept in memory and ends with the process. With the stores of package azure, any
// number of workers on any number of machines share the orchestrations of one storage account. New prepares the
// storage. A program that only starts orchestrations and sends events needs no Run.
//
// # Promises
//
// A worker deletes a message last, when its effects are durable and its orchestration waits or has ended. Until then
// the message stays hidden from other workers. When its worker dies, it is redelivered after Config.Visibility. So a
// worker may be killed at any time: orchestrations continue after their last round, and a running activity may run
// once more.
//
// # Messages that fail
//
// A failed message is redelivered with growing delays, up to Config.MaxDequeueCount deliveries. Transient errors do
// not count: storage that is throttled or unavailable, and an orchestration that another worker drives. Then
// activities fail with their last error, and their orchestration handles it. A signal is moved to the dead-letter
// queue, whose name is that of its queue plus "-dead-letters". An operator resends it after fixing the cause. An
// unreadable message is dead-lettered immediately.
//
// A message whose process died at each delivery may be the cause, or may have run next to it. It is moved to the
// poison queue ("-poison"), from which a worker receives one message at a time and handles it as usual. If the
// process dies twice more, its activities fail, or its orchestration ends as Failed, so that it does not crash the
// next process.
//
// # Storage
//
// In addition to the runtime's storage, the package uses a poison queue and a dead-letter queue for each of the
// runtime's three queues, and the table of package hostlock, with the locks "sweeper" and "retention". A schedule
// stores nothing: each slot is an orchestration whose id names the slot, so several workers start it once.
package worker
