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
// the test. The test also fails when the run cannot go on: an unknown activity, a wait that nothing ends, a step that
// never happens. Detached orchestrations run, too, as far as they come by the end; one that still waits then does not fail
// the test, and what became of it shows in what its activities did. An orchestration that fails does not fail the test; its error is in [Result].
//
// # Crashes
//
// [CrashEverywhere] repeats a scenario with a crash at every storage call of the runtime. An activity can then run once
// more for the same call; with orchestrator.Info(ctx).IdempotencyKey() it recognizes that, and has to give the same
// result. A fake that counts its runs does not: let it decide by its input, or by orchestrator.Info(ctx).Attempt. A
// sub-orchestration that failed can go on as its next execution before its caller learns of the failure.
//
// The package keeps nothing outside of memory but the files of [Golden].
package orchestratortest
