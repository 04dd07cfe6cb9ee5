// Package lib has the functions that orchestrators call in another package.
package lib

import (
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Clock is a variable that people replace in tests.
var Clock = time.Now // want Clock:`uses time\.Now: use ctx\.Now\(\)`

// Stamp reads the clock.
func Stamp() string { return layout(time.Now()) } // want Stamp:`^calls time\.Now: use ctx\.Now\(\)$`

// Deep reads it further down.
func Deep() string { return deeper() } // want Deep:`calls lib\.deeper, which calls lib\.Stamp, which calls time\.Now`

func deeper() string { return Stamp() } // want deeper:`calls lib\.Stamp, which calls time\.Now`

// Box has methods.
type Box[T any] struct{ Value T }

// Open reads the clock through a method of a generic type.
func (b *Box[T]) Open() (T, string) { return b.Value, Stamp() } // want Open:`calls lib\.Stamp`

// Peek does nothing wrong.
func (b *Box[T]) Peek() T { return b.Value }

// Even and Odd call each other.
func Even(n int) bool { return n == 0 || Odd(n-1) } // want Even:`calls lib\.Odd, which calls time\.Now`

// Odd calls Even.
func Odd(n int) bool { return time.Now().IsZero() || n != 0 && Even(n-1) } // want Odd:`calls time\.Now`

// Format does nothing wrong.
func Format(t time.Time) string { return layout(t) }

func layout(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Allowed has a reason.
func Allowed() bool {
	return time.Now().IsZero() //determinism:allow the answer is always no
}

// Shared takes a Context, so it is reported here, and to those who call it from elsewhere.
func Shared(ctx *orchestrator.Context) time.Time { // want Shared:`calls time\.Now`
	return time.Now() // want `orchestrator code calls time\.Now`
}

// Keys returns them in any order.
func Keys[M ~map[K]V, K comparable, V any](m M) []K { // want Keys:`ranges over a map: `
	var keys []K
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// Step1 is the beginning of a long way.
func Step1() { step2() }       // want Step1:`calls lib\.step2, which calls lib\.step3, which calls lib\.step4, which calls lib\.step5, which after 2 more calls time\.Sleep: `
func step2() { step3() }       // want step2:`which`
func step3() { step4() }       // want step3:`which`
func step4() { step5() }       // want step4:`which`
func step5() { step6() }       // want step5:`which`
func step6() { step7() }       // want step6:`which`
func step7() { time.Sleep(1) } // want step7:`calls time\.Sleep`
