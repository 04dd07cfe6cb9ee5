//go:build race

package year

// span is how long a year is under the race detector, which makes all slower by an order of magnitude.
const span = 45 * day
