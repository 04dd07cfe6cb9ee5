// Package orchestrator is the replay runtime. It runs ordinary Go functions durably, as orchestrations that survive
// crashes of the process at any point.
//
// An orchestrator is a function over a [Context]. It calls activities, which do the real work, and waits for their
// results. Everything it learns and decides is kept in rounds, atomic commits to Table Storage. A process that takes
// over an orchestration reads the rounds and runs the function again with the recorded results (replay). It then
// continues from the end of the last round. So an orchestrator must be deterministic: the same results in the same
// order must lead to the same calls. Time, identifiers and logging come from the Context; everything else belongs in
// an activity.
//
// Guarantees:
//
//   - A result in a round is never requested again, and a decision in a round never changes. Code that replays to
//     another decision stalls the orchestration with a [DeterminismError].
//   - An activity runs at least once per call, unless the orchestration ends first: another call won a race, it
//     failed, or it was terminated. It may run more than once when a process dies between the activity's end and the
//     commit of its result, or when two processes drive the same orchestration. [ActivityInfo] carries an idempotency
//     key for that.
//   - Two processes that drive one orchestration never both commit the same round. The insert of the round's row is
//     the lock; the process that loses applies the winner's round before it continues.
//   - An orchestration ends exactly once per execution. The effects that its last round decided (messages,
//     publications, starts) are carried out before any process begins anything else under its id.
//   - Live code sees the same values as a replay: every value has been through the recorded bytes. The start records
//     the conditions that a run depends on: whether queues and a publisher exist, and the version of its code.
//
// # Attempts
//
// An execution that fails is Retrying if its caller repeats the start (Start.WillRetry), and Failed otherwise. While
// it is Retrying, events and commands are kept for the next attempt. A redelivered message, [Runtime.Rewind], a
// retried dead letter and a sub-orchestration called WithRetry all begin the next attempt by one rule:
//
//	The next attempt learns again, in the same order, the events that were raised and the results of the calls that
//	completed and were not undone. The condition is that the attempt before failed because one of its calls failed,
//	timed out as a whole, or was stopped, and did nothing afterwards but undo. Otherwise the next attempt starts over,
//	and only the events are delivered again.
//
// The kept results are those of activities and sub-orchestrations, timers that fired, people's answers, side effects,
// NewUUID, Rand, and the ids of sub-orchestrations and publications. They come from all attempts since the last that
// started over. Failures and the time are not kept. So races have the same winners, and an event that no code has
// received is seen after all kept results. Asking a person and waiting for an event are actions, too. A run that undid
// its work by calls of its own, or that failed by its own decision, does the work again. [WithUndo] and [Undo] undo
// single calls, and keep the rest.
//
// # Children
//
// A sub-orchestration runs once per call and has rounds, timers and messages of its own. Its caller learns the outcome
// once, and is not woken before. When its caller's execution ends first, it is canceled, terminated or abandoned
// ([WithParentClose]).
//
// # Cancellation
//
// A canceled orchestration stays canceled: all its calls and waits, old and new, return [ErrCanceled]. Calls made with
// [WithoutCancel], which is for cleaning up, are excepted. A second cancellation changes nothing.
//
// # Stalled code
//
// An orchestration is Stalled, with the error, when its code replays to another decision, is not registered, blocks
// without its Context, or waits for something that can never happen. Events are kept for it. When the code is fixed,
// the next sweep continues it.
//
// # Limits
//
// A value (input, result, event, answer) has up to [MaxPayload] bytes of JSON and [MaxDepth] levels of arrays and
// objects. A larger one is rejected on entry; one that the code itself makes fails its call, or the execution, for
// good. Names of orchestrators, versions and activities, and correlation ids, have up to [MaxName] bytes. The number
// of concurrent calls and of unread events is unlimited: a turn with more decisions than fit in a round is divided
// over rounds. A duplicate of a signal is recognised for [SignalHorizon], and within one execution for ever.
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
//	purge                           replaces the status while the rows are being deleted
//
// A payload of more than 64 KiB, and a round that does not fit its row, is in a blob {escaped
// id}/{execution:08d}/{sha256}. A value that does not fit its message is in {escaped id}/{sha256}. A blob is written
// before the row or message that names it. The rounds of an execution that has continued as new are deleted once the
// next execution has continued as new, too, and then its blobs. The blob of a message is deleted once the message is
// applied.
//
// It owns the table "orchestrationsParked", in which the sweeper finds orchestrations that are overdue because a
// message was lost. It also owns three queues. A message of "orchestration-signals" is a [Signal] that is due now, and
// one of "orchestration-schedules" is a Signal that is due later. A message of "orchestration-activities" is a batch
// of activities that any process may run.
//
// The package imports no Azure SDK, no HTTP and no engine.
package orchestrator
