// Package orchestratortest tests orchestrators in ordinary Go tests: on stores in memory, in virtual time, with the
// activities real or faked. It is for authors of orchestrators.
//
//	func TestAnOrderIsShipped(t *testing.T) {
//		got := orchestratortest.Run(t, orchestratortest.Scenario[Order, string]{
//			Orchestrator:  order,
//			Input:         Order{ID: "o-1"},
//			Orchestrators: []orchestrator.AnyOrchestrator{ship},
//			Activities: []orchestrator.AnyActivity{
//				orchestratortest.Fake(charge, func(context.Context, Order) (string, error) { return "receipt-1", nil }),
//			},
//			Steps: []orchestratortest.Step{{Event: "approved", Data: true}, {At: 48 * time.Hour, Event: "picked up"}},
//		})
//		if got.Err != nil || got.Output != "o-1 shipped" || got.Elapsed != 48*time.Hour {
//			t.Error(got)
//		}
//	}
//
// # Time
//
// Every run is a bubble of [testing/synctest]: orchestrators, activities, fakes and Check see a clock that begins at
// midnight UTC of 2000-01-01. It jumps to the next event as soon as all of them wait, so a timer of days takes no
// time. The functions of this package open the bubble themselves: do not call them inside another bubble. Code in it
// follows the rules of synctest. Real I/O works, and the clock does not advance meanwhile; but every goroutine that
// an activity starts must end before the run does, those behind idle HTTP connections included.
//
// # Promises
//
// A run goes through the same code as in production: rounds, signals, parking and replay. It ends when the
// orchestration has ended and no message is left to deliver. Each finished history is replayed, so nondeterministic
// code fails the test. The test also fails when the run cannot continue: a wait without an end, a step that never
// happens, or code that stalls, which "the run is stalled" reports with the reason. Code that does not return at all,
// because it loops or holds a lock, stops the clock: after 30 s of real time without a sign of life, and without an
// activity that runs, the process ends in a panic that says the same, with the line.
//
// Sub-orchestrations that are canceled or terminated at their caller's end are driven to their end, clean-up
// included, before the result is read; a sub-orchestration that still runs then, and is not abandoned, fails the
// test. Detached and abandoned orchestrations also run until the end; one that still waits then does not fail the
// test, and only its activities show its progress. An orchestration that fails does not fail the test; its error is
// in [Result].
//
// # Crashes
//
// [CrashEverywhere] repeats a scenario with a crash at every storage call of the runtime. An activity can then run
// once more for the same call; it recognizes the repetition by orchestrator.Info(ctx).IdempotencyKey(), and must
// return the same result. A fake that counts its runs does not: let it decide by its input, or by
// orchestrator.Info(ctx).Attempt. A failed sub-orchestration can continue as its next execution before its caller
// learns of the failure.
//
// # Failures
//
// Scenario.Attempts is the number of deliveries of the start message when the orchestration fails. Between them it is
// Retrying for 30 s, as on the host, and after the last attempt it is Failed. The steps "retry", "rewind" and
// "redeliver" deliver the message of a Retrying run now, rewind a Failed run as an operator does, and deliver the
// message once more after it was acknowledged. Result.Ledger lists the activities that ran, with their attempts.
// CrashEverywhere covers all of it.
//
// [FailEverywhere] repeats a scenario with a failure of every activity call, and then gives the run another attempt.
// The attempt begins by the rule of the package orchestrator: it keeps the results of the calls that completed and
// were not undone, or starts over. Promises:
//
//   - Every attempt of an activity that ran without a failure is the first to fail in four runs: permanent or
//     ordinary, before or after its function has run. Later attempts of the same call fail, too; calls of other
//     attempts of the orchestration do not. If timers, races or coroutines make calls in another order and a run does
//     not reach the failing call, the run fails.
//   - A Retrying run gets one attempt more than Attempts; a Failed run is rewound once, and so are detached
//     orchestrations. A run that a step has canceled or terminated is not.
//   - Answers to tasks and events of sub-orchestrations are repeated when an attempt waits for them again. Steps that
//     a run does not reach do not fail it, and Limit is three times as long.
//   - The run ends as it does without the failure, in status, output and error, or as Failed with an error that holds that of
//     the call. So code that catches an error and completes differently fails, unless Scenario.Fallback allows it.
//   - Check runs at the end of each run, and checks the external state, for Completed and for Failed.
//
// An activity must be correct when it is repeated, also in another attempt, where its idempotency key differs: let
// its input name the work. A fake that counts its runs fails; let it decide by orchestrator.Info(ctx).Execution.
//
// # Samples
//
// CrashEverywhere and FailEverywhere make hundreds of runs for a long scenario. By default they make all of them;
// with -short, about one in 256. The environment variable ROUNDHOUSE_TEST_SHARE sets another share: 8 is one run in
// 8, and 1 is every run, also with -short. ROUNDHOUSE_TEST_SEED selects the runs: with the commit as its value, a
// pull request tries a reproducible part, and later commits try the others. The run without a crash or a failure is
// always made.
//
// The name of a subtest names the fault and its call, and does not depend on the sample. The output of a subtest that
// fails ends with the command that repeats it alone.
//
// The package stores only the files of [Golden] outside of memory.
package orchestratortest
