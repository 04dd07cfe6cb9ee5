// Package orchestratortest tests orchestrators in ordinary Go tests: on stores in memory, in virtual time, with the
// activities real or faked. It is for those who write orchestrators.
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
// midnight UTC of 2000-01-01 and jumps to the next thing to happen as soon as all of them wait, so a timer of days takes
// no time. The functions of this package open the bubble themselves: do not call them from inside another one. What runs
// in it keeps the rules of synctest. Real I/O works, while the clock stands still; but every goroutine that an activity
// starts has to end before the run does, those behind idle HTTP connections included.
//
// # Promises
//
// A run goes through the same code as in production: rounds, signals, parking and replay. It ends when the orchestration
// has, and nothing is left to deliver. Each finished history is replayed, so that code that is not deterministic fails
// the test. The test also fails when the run cannot go on: a wait that nothing ends, a step that never happens, or code that
// stalls, which "the run is stalled" reports with the reason. Code that does not return at all, because it loops or holds a
// lock, stops the clock: after 30 s of real time without a sign of life, and without an activity that runs, the process ends
// in a panic that says the same, with the line.
//
// Sub-orchestrations that are canceled or terminated at their caller's end are driven to their end, clean-up included, before
// the result is made; one that goes on all the same, and is not abandoned, fails the test. Detached and abandoned
// orchestrations run, too, as far as they come by the end; one that still waits then does not fail the test, and what became
// of it shows in what its activities did. An orchestration that fails does not fail the test; its error is in [Result].
//
// # Crashes
//
// [CrashEverywhere] repeats a scenario with a crash at every storage call of the runtime. An activity can then run once
// more for the same call; with orchestrator.Info(ctx).IdempotencyKey() it recognizes that, and has to give the same
// result. A fake that counts its runs does not: let it decide by its input, or by orchestrator.Info(ctx).Attempt. A
// sub-orchestration that failed can go on as its next execution before its caller learns of the failure.
//
// # Failures
//
// Scenario.Attempts says how often the message that starts the orchestration comes when the orchestration fails; in between
// it is Retrying for 30 s, as on the host, and after the last attempt it is given up. The steps "retry", "rewind" and
// "redeliver" let the message of a Retrying run come now, let a person rewind a Failed run, and let the message come once more
// after it was acknowledged. Result.Ledger shows what really ran, in which attempt. CrashEverywhere covers all of it.
//
// [FailEverywhere] repeats a scenario with a failure of every activity call, and then gives the run another attempt. The
// attempt begins by the rule of the package orchestrator: it keeps the results of the calls that completed and were not undone,
// or begins anew. What is promised:
//
//   - Every attempt of an activity that ran without a failure is the first to fail in four runs: permanent or ordinary, before
//     or after its function has run. Later attempts of the same call fail, too; calls of other attempts of the orchestration
//     do not. The failure of a call that timers, races or coroutines make in another order is not missed in silence: a run that
//     does not come to it fails.
//   - A run that is Retrying gets one attempt more than Attempts says; one that is Failed is rewound once, and so are detached
//     orchestrations. What a step has canceled or terminated is not.
//   - What people and others did, they do again when they are asked again: answers to tasks, and events of sub-orchestrations.
//     Steps that a run does not come to do not fail it, and Limit is three times as long.
//   - The run ends as it does without the failure, in status, output and error, or as Failed with an error that holds that of
//     the call. So code that catches an error and completes differently fails, unless Scenario.Fallback allows it.
//   - Check looks at the end of each run: it says what has to hold of the world outside, for Completed and for Failed.
//
// An activity has to be right when it is asked for again, also in another attempt, where its idempotency key is another one:
// let its input name the work. A fake that counts its runs fails; let it decide by orchestrator.Info(ctx).Execution.
//
// # Samples
//
// CrashEverywhere and FailEverywhere make hundreds of runs for a long scenario. By default they make all of them; with -short,
// about one in 256. The environment variable ROUNDHOUSE_TEST_SHARE sets another share: 8 is one run in 8, and 1 is every run, also
// with -short. ROUNDHOUSE_TEST_SEED chooses which ones: with the commit as its value, a pull request tries a part that can be
// repeated, and later commits try the others. The run without a crash or a failure is always made.
//
// The name of a subtest says what happens at which call, and does not depend on the sample. The output of a subtest that fails
// ends with the command that repeats it alone.
//
// The package keeps nothing outside of memory but the files of [Golden].
package orchestratortest
