package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine/hmac"
)

// hmacFrom reads ROUNDHOUSE_HMAC_GRACE and ROUNDHOUSE_HMAC_PROPAGATION: when the versions of a key change places
// (docs/engines/hmac.md).
func hmacFrom(lookup lookupFunc) (hmac.Timing, error) {
	const prefix = "ROUNDHOUSE_HMAC_"
	timing := hmac.DefaultTiming()
	var errs []error
	for name, field := range map[string]*time.Duration{prefix + "GRACE": &timing.Grace, prefix + "PROPAGATION": &timing.Propagation} {
		if text := setting(lookup, name); text != "" {
			var err error
			if *field, err = time.ParseDuration(text); err != nil || *field < 0 {
				errs = append(errs, fmt.Errorf("%s is %.64q: set a Go duration of 0 or more, such as 24h", name, text))
			}
		}
	}
	if err := timing.Validate(); err != nil && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%sGRACE, %sPROPAGATION: %w", prefix, prefix, err))
	}
	return timing, errors.Join(errs...)
}
