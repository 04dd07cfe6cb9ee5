// Package enginetest runs engines in ordinary Go tests: definitions on the pipeline and the runtime, over stores in
// memory, with the test instead of the Functions host. It is for authors of engines. It needs no app; handlertest
// runs a whole app, and orchestratortest an orchestrator without its messages, history and dead letters.
//
//	func TestBackup(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			w := enginetest.New(t, enginetest.Config{Engines: func(enginetest.Stores) []engine.Definition {
//				return []engine.Definition{backup}
//			}})
//			w.Send("backup-queue", `{"correlationId": "c1", "input": {"database": "shop"}}`)
//			w.Run()
//			if got := w.History("backup", "c1"); len(got) != 1 || got[0].RunStatus != engine.StatusSucceeded {
//				t.Error(got)
//			}
//		})
//	}
//
// # Time
//
// A test that waits belongs in a bubble of [testing/synctest]. Run and Pass then jump to the next message that
// becomes due, so a timer of days takes no time.
//
// # Processes
//
// The stores outlive processes. Restart starts a process that continues with them, with other code or settings if
// Config was changed. FailEverywhere repeats a test with a fault at every storage call, such as a crash, after which
// the next process continues.
//
// The package stores nothing outside of memory.
package enginetest
