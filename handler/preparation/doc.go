// Package preparation creates the storage that a program needs before it can work: tables, queues, containers, a key.
//
// Promises:
//   - No step is abandoned. A round tries every step that has not succeeded yet, and rounds continue, at growing
//     intervals of at most 15 s, until none is left. A step that has succeeded is not repeated.
//   - The steps of a stage run in parallel, up to a bound, and the next stage begins when all of them have succeeded.
//   - A failed round is one line of the log, for any number of failed steps: equal causes are merged.
//   - Existing storage is not created again at a start: Work.Known checks that, in a request or two. Writers detect
//     storage that was deleted meanwhile (Keeper): everything is created once more, and the write is repeated.
//   - Callers wait for prepared storage with Await, for as long as their context lasts.
//
// The package owns no storage keys, and does not depend on the contents of the steps.
package preparation
