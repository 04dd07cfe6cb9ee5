// Package orchestrator is the replay runtime: it runs ordinary Go functions durably, as orchestrations that survive
// crashes of the process at any point.
//
// An orchestrator is a function over a [Context]. It calls activities, which do the real work, and waits for their
// results. Everything it learns and decides is kept in rounds, atomic commits to Table Storage. A process that takes
// an orchestration over reads the rounds, runs the function again with the recorded results (replay) and goes on
// where the last round ended. So an orchestrator must be deterministic: the same results in the same order have to
// lead to the same calls. Time, identifiers and logging come from the Context; everything else belongs in an activity.
//
// What is promised:
//
//   - A result that a round holds is never asked for again; a decision that a round holds is never taken differently.
//     Code that replays to another decision stalls the orchestration with a [DeterminismError].
//   - An activity runs at least once for every time it is called, unless the orchestration ends before it, because
//     another call won a race, it failed, or it was terminated. It may run more than once when a process dies between
//     its end and the commit of its result, or when two processes drive the same orchestration. [ActivityInfo] carries
//     an idempotency key for that.
//   - Two processes that drive one orchestration never both commit the same round: the insert of the round's row is the
//     lock, and the process that loses takes over what the other one committed before it goes on.
//   - An orchestration ends exactly once per execution. What its last round decided (messages, publications, starts) is done
//     before anything else begins under its id, whoever begins that.
//   - Live code sees what replay will see: every value that it gets has been through the recorded bytes. What a run depends
//     on is recorded when it begins: whether there are queues and a publisher, and the version of its code.
//
// # Attempts
//
// An execution that fails is Retrying if whoever started it starts it again (Start.WillRetry), and Failed otherwise. While it
// is Retrying, events and commands are kept for the next attempt. A redelivered message, [Runtime.Rewind], a retried
// dead letter and a sub-orchestration called WithRetry all begin the next attempt by one rule:
//
//	The next attempt learns again, in the same order, the events that were raised and the results of the calls that completed and
//	were not undone, if the attempt before failed because one of its calls failed, timed out as a whole, or was stopped, and did
//	nothing afterwards but undo. Otherwise it starts over, and only the events are delivered again.
//
// What is kept are results of activities and sub-orchestrations, timers that fired, people's answers, side effects, NewUUID,
// Rand, and the ids of sub-orchestrations and publications, of all attempts since the last that started over; failures and the time are
// not. So races have the same winners, and an event that nothing has taken is seen behind all that is kept. Asking a person and waiting
// for an event are actions, too. A run that undid its work by calls of its own, or that failed by its own decision, does the
// work again. [WithUndo] and [Undo] undo single calls, and keep the rest.
//
// # Children
//
// A sub-orchestration runs once for a call and has rounds, timers and messages of its own; its caller learns once how it ended,
// and is not woken before. When its caller's execution ends first, it is canceled, terminated or abandoned ([WithParentClose]).
//
// # Cancellation
//
// A canceled orchestration stays canceled: everything it has called, calls or waits for gives [ErrCanceled], but for what is
// called with [WithoutCancel], which is for cleaning up. A second cancellation changes nothing.
//
// # Code that cannot go on
//
// An orchestration whose code replays to another decision, is not registered, blocks without its Context, or waits for what can never
// come is Stalled, with the error. Events are kept for it. When the code is fixed, the next sweep continues it.
//
// # Limits
//
// A value (input, result, event, answer) has up to [MaxPayload] bytes of JSON and [MaxDepth] levels of arrays and objects. A
// larger one is refused where it enters; one that the code itself makes fails its call, or the execution, for good. Names of
// orchestrators, versions and activities, and correlation ids, have up to [MaxName] bytes. There is no
// limit to how many calls are made at once, or to how many events wait to be read: a turn that decides more than a round holds
// is divided over rounds. A duplicate of a signal is recognised for [SignalHorizon], and within one execution for ever.
//
// # Storage
//
// The package owns the table "orchestrations" and the blob container of the same name. An orchestration is one
// partition; the partition key is its escaped id. Rows:
//
//	r-{execution:08d}-{round:08d}   a round, inserted once and never changed
//	status                          the snapshot of the runtime, replaced with every round, in the same transaction
//	task-...                        human tasks, which the package tasks owns
//	x-{execution:08d}               the marker of an execution: a round requires it, so that a process that was paused cannot
//	                                add a round to an execution whose rounds were deleted
//	purge                           stands in place of the status while the rows are being deleted
//
// A payload of more than 64 KiB, and a round that does not fit its row, is in a blob {escaped id}/{execution:08d}/{sha256}; what
// does not fit a message in {escaped id}/{sha256}. A blob is written before the row or message that names it. The rounds of an
// execution that has continued as new are deleted once the next execution has continued as new, too, and then its blobs. The
// blob of a message is deleted once the message is applied.
//
// It owns the table "orchestrationsParked", which finds what is overdue because a message was lost, and three queues: a
// message of "orchestration-signals" and of "orchestration-schedules" is a [Signal], due now and due later; one of
// "orchestration-activities" is a batch of activities that any process may run.
//
// The package knows no Azure SDK, no HTTP and no engine.
package orchestrator
