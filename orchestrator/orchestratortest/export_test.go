package orchestratortest

import "time"

// SetStillness changes what a test cannot wait for.
func SetStillness(d time.Duration) { maxSilence = d }
