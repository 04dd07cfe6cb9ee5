// Package determinism is a static analyzer that refuses, in the code of orchestrators, what a replay cannot repeat:
// clocks, randomness, goroutines, channels, map order, locks, input and output, shared state.
//
// Orchestrator code is every function, method and function literal that takes an *orchestrator.Context, with the
// literals inside it, and everything that it calls, through any number of functions and packages of which the source
// is analysed. The standard library is judged by a table instead of its source; package orchestrator is trusted, except
// for what takes a context.Context, which is for activities and for the outside. A function that is mentioned without
// being called, as an argument say, counts as called. A variable that is set once, to a function, counts as that
// function.
//
// Not orchestrator code: what is passed to orchestrator.NewActivity or orchestrator.SideEffect, wherever it is written,
// and files of tests, which may steer an orchestrator with whatever they like.
//
// # Maps
//
// A range over a map is refused unless the order cannot show: neither key nor value is taken, or the loop consists of
// these steps only, made from expressions that neither call unknown functions nor read what the loop changes:
//
//   - append to a local slice that is sorted further down, before anything else is done with it;
//   - add to, or subtract from, an integer;
//   - set the element of another map at the loop's key, or set any element of it to a constant;
//   - delete the loop's key from a map;
//   - if, := and continue around them.
//
// Whether a comparison function leaves ties is not checked. The iterators maps.Keys, maps.Values and maps.All are refused
// likewise, unless slices.Sorted or a sibling of it takes them, or maps.Collect or maps.Insert, or slices.Collect with a
// sort further down.
//
// # Allowing
//
// A comment on the line of the problem, with a reason, allows it for this function and for all that call it:
//
//	started := processStart() //determinism:allow the same in every process of a deployment
//
// Without a reason it allows nothing, and is a finding of its own; so is one that has nothing to allow.
//
// # What it cannot see
//
// It does not guess, so it is silent about calls of interface methods and of function values (parameters, fields,
// variables that are set more than once), about reflection, assembly and cgo, about writes to shared state through
// pointers and receivers, about reads of shared state that others change, and about a Context that is wrapped in another
// type. The check on replay remains for these. Most input and output hides behind interfaces, but takes a context.Context:
// so context.Background and context.TODO are refused.
//
// Analyzer works with every driver of go/analysis. The command in cmd/determinism runs it alone or under go vet.
package determinism
