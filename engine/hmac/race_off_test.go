//go:build !race

package hmac_test

const underRace = false
