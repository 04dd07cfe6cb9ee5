// Package determinism is a static analyzer that refuses, in the code of orchestrators, what a replay cannot repeat:
// clocks, randomness, goroutines, channels, map order, locks, input and output, addresses, shared state.
//
// Orchestrator code is every function, method and function literal that takes an *orchestrator.Context or a structure
// that holds one, as a parameter or a receiver, with the literals inside it, and everything that it calls, through any
// number of functions and packages of which the source is analysed. The standard library is judged by a table instead of
// its source; package orchestrator is trusted, except for what takes a context.Context, which is for activities and for
// the outside. A function that is mentioned without being called, as an argument say, counts as called.
//
// A variable or field of a function type, or a collection of such, counts as each function that its package puts into
// it. A call through an interface counts as a call of the method of each type that the package puts into the variable or
// field. If it puts none there, that is each type of the package, and of those that it imports, that implements the
// interface; interfaces of the standard library are excepted. A value that orchestrator code converts to an interface
// counts as calling its methods.
//
// Not orchestrator code: what is passed to orchestrator.NewActivity or orchestrator.SideEffect, wherever it is written,
// and files of tests, which may steer an orchestrator with whatever they like.
//
// # Shared state
//
// All runs, their replays and all processes have to find the same. So orchestrator code must not change, by itself or
// through methods and functions that it calls, variables of packages, variables around the literal of an orchestrator, or
// what the receiver of an orchestrator leads to. Nor may it read what others change there: what is set outside of init
// functions, declarations and the making of a structure, or set there from a clock, the environment and the like.
// Activities and orchestrators that a function keeps in variables are excepted. A method is an orchestrator when it is used
// as a value outside of orchestrator code, or has the form of one and no caller in its package.
//
// Variables of one run may be shared by its coroutines, and its objects may have methods that change them. But a condition
// of WaitUntil and the function of a SideEffect must change nothing around them, nor must an activity within an
// orchestrator.
//
// Generators of random numbers may be made with a seed of the input, the Context or a constant, for one run.
//
// # Maps
//
// A range over a map is refused unless the order cannot show: neither key nor value is taken, or the loop consists of
// these steps only, made from expressions that neither call unknown functions nor read what the loop changes:
//
//   - append to a local slice that is sorted further down, before anything else is done with it;
//   - add to, subtract from, multiply, or combine the bits of, an integer;
//   - keep a maximum or minimum, with min, max or an if statement, and what belongs to it when ties are decided;
//   - set a variable to the same in all rounds, or combine a flag by && or ||;
//   - set the element of another map at the loop's key, or set any element of it to a constant;
//   - delete the loop's key from a map;
//   - return the same from all rounds, or set a variable and break, in a loop that changes nothing else;
//   - set variables of the round itself;
//   - if, switch, :=, continue, and loops over what is no map, around them.
//
// Known functions are those of the package that change nothing, and some of the standard library.
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
// It is silent about functions that come from another package than the field or variable that holds them, about results
// of functions that are called through a variable, about reflection, assembly and cgo, about changes through pointers that
// are kept in other structures, and about variables and fields that another package changes. The check on replay remains
// for these. Most input and output hides behind interfaces, but takes a context.Context: so context.Background,
// context.TODO and contexts that are kept in fields and variables are refused.
//
// What it says of fields holds for all values of a type: when two of them have different functions, it takes both to be
// called.
//
// Analyzer works with every driver of go/analysis. The command in cmd/determinism runs it alone or under go vet.
package determinism
