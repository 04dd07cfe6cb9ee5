//go:build !race

package orchestrator

const underRace = false
