// Package determinism is a static analyzer that reports operations in the code of orchestrators that a replay cannot
// repeat: clocks, randomness, goroutines, channels, map order, locks, input and output, addresses, shared state.
//
// Orchestrator code is every function, method and function literal that takes an *orchestrator.Context or a structure
// that holds one, as a parameter or a receiver, with the literals inside it. All code that it calls is included,
// through any number of functions and packages with analyzed source. A table describes the standard library; its
// source is not analyzed. Package orchestrator is trusted, except for functions with a context.Context, which are for
// activities and other callers. A function that is named without a call, for example as an argument, counts as
// called.
//
// A variable or field of a function type, or a collection of such, counts as each function that its package puts into
// it. A call through an interface counts as a call of the method of each type that the package puts into the variable
// or field. If it puts none there, each type of the package and its imports that implements the interface counts,
// except for interfaces of the standard library. A value that orchestrator code converts to an interface counts as
// calling its methods.
//
// Functions passed to orchestrator.NewActivity or orchestrator.SideEffect are not orchestrator code, wherever they
// are written. Neither are test files, which may control an orchestrator by any means.
//
// # Shared state
//
// All runs, their replays and all processes must read the same values. So orchestrator code must not change package
// variables, variables around the literal of an orchestrator, or values behind the receiver of an orchestrator,
// neither directly nor through its callees. Nor may it read such a variable if it is set outside of init functions,
// declarations and constructors, or set there from a clock, the environment and the like. Activities and
// orchestrators that a function keeps in variables are excepted. A method is an orchestrator when it is used as a
// value outside of orchestrator code, or has the form of one and no caller in its package.
//
// Variables of one run may be shared by its coroutines, and its objects may have methods that change them. But a condition
// of WaitUntil and the function of a SideEffect must change nothing around them, nor must an activity within an
// orchestrator.
//
// One run may create random number generators with a seed from the input, the Context or a constant.
//
// # Maps
//
// A range over a map is reported unless the order has no effect: the loop uses neither key nor value, or consists of
// these steps only. Their expressions must not call unknown functions or read variables that the loop changes:
//
//   - append to a local slice that is sorted later, before any other use;
//   - add to, subtract from, multiply, or combine the bits of, an integer;
//   - keep a maximum or minimum, with min, max or an if statement, and its related values if ties are decided;
//   - set a variable to the same in all rounds, or combine a flag by && or ||;
//   - set the element of another map at the loop's key, or set any element of it to a constant;
//   - delete the loop's key from a map;
//   - return the same from all rounds, or set a variable and break, in a loop that changes nothing else;
//   - set variables of the round itself;
//   - if, switch, :=, continue, and loops over other types than maps, around them.
//
// Known functions are those of the package without effects, and some of the standard library.
//
// Ties of a comparison function are not checked. The iterators maps.Keys, maps.Values and maps.All are reported
// likewise, unless they are arguments of slices.Sorted or a variant of it, of maps.Collect or maps.Insert, or of
// slices.Collect with a later sort.
//
// # Allowing
//
// A comment on the line of the problem, with a reason, allows it for this function and for all that call it:
//
//	started := processStart() //determinism:allow the same in every process of a deployment
//
// A comment without a reason allows nothing, and is a finding of its own; so is a comment without a finding.
//
// # Limits
//
// The analyzer does not follow functions from another package than the field or variable that holds them, results of
// functions called through a variable, reflection, assembly and cgo, changes through pointers in other structures,
// and variables and fields that another package changes. The check on replay remains for these. Most input and output
// is behind interfaces, but takes a context.Context. So context.Background, context.TODO and contexts in fields and
// variables are reported.
//
// It treats a field as the same for all values of a type: if two values have different functions, it assumes that
// both are called.
//
// Analyzer works with every driver of go/analysis. The command in cmd/determinism runs it alone or under go vet.
package determinism
