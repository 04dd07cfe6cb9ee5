// Package preparation makes what a program needs in storage before it can work: tables, queues, containers, a key.
//
// What it promises:
//   - Nothing is given up. A round tries every step that has not succeeded yet, and rounds go on, at growing intervals of 15 s
//     at most, until none is left. A step that has succeeded is not repeated.
//   - The steps of a stage run at the same time, a bounded number of them, and the next stage begins when all of them have
//     succeeded.
//   - A failed round is one line of the log, however many steps have failed: equal causes are one.
//   - What is known to have been made is not made again at a start: Work.Known says so, in a request or two. What somebody deletes
//     meanwhile is noticed by who writes there (Keeper): everything is made once more, and the write is repeated.
//   - Who needs what is prepared waits for it with Await, for as long as its context lasts.
//
// The package owns no storage keys, and does not know what the steps do.
package preparation
