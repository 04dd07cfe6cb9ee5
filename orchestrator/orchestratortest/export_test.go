package orchestratortest

import (
	"testing"
	"time"
)

// SetStillness shortens maxSilence, which a test cannot wait for.
func SetStillness(d time.Duration) { maxSilence = d }

// FailAtEveryCall is FailEverywhere with any share.
func FailAtEveryCall[In, Out any](t *testing.T, scenario func(t *testing.T) Scenario[In, Out]) {
	failEverywhere(t, scenario, func(testing.TB, ...any) bool { return true })
}
