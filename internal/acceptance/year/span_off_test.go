//go:build !race

package year

// span is how long a year is.
const span = 365 * day
