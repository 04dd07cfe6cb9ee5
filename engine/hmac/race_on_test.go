//go:build race

package hmac_test

// underRace says that the race detector looks on, which makes all slower by an order of magnitude: it sees a part of the crashes,
// and all of them run without it.
const underRace = true
