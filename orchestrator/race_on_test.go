//go:build race

package orchestrator

// underRace says that the race detector looks on. It never forgets a goroutine, so it runs out of memory over all the crashes
// that there are; it sees a quarter of them, and the others run without it.
const underRace = true
