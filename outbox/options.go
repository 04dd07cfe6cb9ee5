package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// These limits cannot be configured.
const (
	// MaxPayload is the largest payload, in bytes.
	MaxPayload = 1 << 20
	// MaxIDLength bounds tenant ids, event types, order keys, correlation ids and trace parents, in bytes.
	MaxIDLength = 128
	// MaxNotes bounds the notes of a Decision, in bytes.
	MaxNotes = 4 << 10
	// MaxLimit is the longest page of a list and the longest slice of a bulk operation.
	MaxLimit = 500
	// DefaultLimit is the length of a page when a filter has none.
	DefaultLimit = 50
)

// Options are the settings of the outbox (outbox document, "Configuration"). A number that is 0 means its default.
// DefaultOptions also has the switches that are on by default.
type Options struct {
	// PollIntervalSeconds is the interval of the timer that calls Sweep, 1 to 3600; 0 means 15. Messages do not wait for
	// it: it finds those with a lost wake-up.
	PollIntervalSeconds int
	// BatchSize is the number of messages that are claimed together, 1 to 500; 0 means 50.
	BatchSize int
	// MaxRetries is the number of failures that make a message dead, 1 to 1000; 0 means 5.
	MaxRetries int
	// BaseRetryDelaySeconds is the base of the back-off, 1 to 86400; 0 means 10.
	BaseRetryDelaySeconds int
	// UseExponentialBackoff doubles the bound of the delay with every failure: the delay is evenly distributed between 0
	// and base * 2^RetryCount. Without it, the delay is always the base.
	UseExponentialBackoff bool
	// MaxErrorTextLength is the length at which error texts are cut, in characters, 1 to 16000; 0 means 2000.
	MaxErrorTextLength int

	// MaxRetryDelay bounds the back-off and the delay that a destination may request; 0 means 1 h.
	MaxRetryDelay time.Duration
	// MisconfiguredAfter is how long a message waits for configuration before it gets a dead letter; 0 means 5 min, about
	// the time of the default retries of a refused message.
	MisconfiguredAfter time.Duration
	// DeliveryTimeout bounds one delivery; 0 means 15 s.
	DeliveryTimeout time.Duration
	// ClaimDuration is the duration of a claim, at least twice DeliveryTimeout; 0 means 2 min. Messages that a crashed
	// process had claimed wait for the rest of it.
	ClaimDuration time.Duration
	// MaxConcurrency bounds the deliveries of a Dispatcher; 0 means 128.
	MaxConcurrency int
	// MaxPerDestination bounds the deliveries to one destination, and so the unsettled deliveries of a killed process; 0
	// means 16.
	MaxPerDestination int
	// CircuitFailures is the number of consecutive transient failures that stop the deliveries to a destination; 0 means
	// 5.
	CircuitFailures int
	// CircuitCooldown is how long the deliveries stop before one message is tried. It doubles up to ten times that; 0
	// means 30 s.
	CircuitCooldown time.Duration
	// MetricsWindow is the period of Throughput and FailureRatio; 0 means 5 min.
	MetricsWindow time.Duration
	// KeyForm is the form of keys that Writer.Key derives; 0 means LengthPrefixed.
	KeyForm KeyForm
}

// DefaultOptions returns the documented defaults, exponential back-off included.
func DefaultOptions() Options {
	return Options{UseExponentialBackoff: true}.withDefaults()
}

func (o Options) withDefaults() Options {
	o.PollIntervalSeconds = cmp.Or(o.PollIntervalSeconds, 15)
	o.BatchSize = cmp.Or(o.BatchSize, 50)
	o.MaxRetries = cmp.Or(o.MaxRetries, 5)
	o.BaseRetryDelaySeconds = cmp.Or(o.BaseRetryDelaySeconds, 10)
	o.MaxErrorTextLength = cmp.Or(o.MaxErrorTextLength, 2000)
	o.MaxRetryDelay = cmp.Or(o.MaxRetryDelay, time.Hour)
	o.MisconfiguredAfter = cmp.Or(o.MisconfiguredAfter, 5*time.Minute)
	o.DeliveryTimeout = cmp.Or(o.DeliveryTimeout, 15*time.Second)
	o.ClaimDuration = cmp.Or(o.ClaimDuration, 2*time.Minute)
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 128)
	o.MaxPerDestination = cmp.Or(o.MaxPerDestination, 16)
	o.CircuitFailures = cmp.Or(o.CircuitFailures, 5)
	o.CircuitCooldown = cmp.Or(o.CircuitCooldown, 30*time.Second)
	o.MetricsWindow = cmp.Or(o.MetricsWindow, 5*time.Minute)
	o.KeyForm = cmp.Or(o.KeyForm, LengthPrefixed)
	return o
}

// Validate checks all options, with defaults applied. The error is an ErrInvalid that names each invalid one.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	between := func(name string, v, least, most int) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%w: %s is %d: use %d to %d", ErrInvalid, name, v, least, most))
		}
	}
	during := func(name string, v, least, most time.Duration) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%w: %s is %v: use %v to %v", ErrInvalid, name, v, least, most))
		}
	}
	between("PollIntervalSeconds", o.PollIntervalSeconds, 1, 3600)
	between("BatchSize", o.BatchSize, 1, 500)
	between("MaxRetries", o.MaxRetries, 1, 1000)
	between("BaseRetryDelaySeconds", o.BaseRetryDelaySeconds, 1, 86400)
	between("MaxErrorTextLength", o.MaxErrorTextLength, 1, 16000)
	between("MaxConcurrency", o.MaxConcurrency, 1, 10000)
	between("MaxPerDestination", o.MaxPerDestination, 1, 10000)
	between("CircuitFailures", o.CircuitFailures, 1, 1000)
	between("KeyForm", int(o.KeyForm), int(LengthPrefixed), int(Document))
	during("MaxRetryDelay", o.MaxRetryDelay, time.Second, 30*24*time.Hour)
	during("MisconfiguredAfter", o.MisconfiguredAfter, time.Second, 30*24*time.Hour)
	during("DeliveryTimeout", o.DeliveryTimeout, time.Millisecond, 10*time.Minute)
	during("ClaimDuration", o.ClaimDuration, 2*o.DeliveryTimeout, time.Hour)
	during("CircuitCooldown", o.CircuitCooldown, time.Second, time.Hour)
	during("MetricsWindow", o.MetricsWindow, time.Second, 24*time.Hour)
	return errors.Join(errs...)
}

// maxDoublings keeps the shift of the back-off in range; the bound is reached long before.
const maxDoublings = 40

// Ceiling returns the longest delay after this many failures (outbox document, "Configuration"): base * 2^retryCount
// with exponential back-off, otherwise the base, and at most MaxRetryDelay.
func (o Options) Ceiling(retryCount int) time.Duration {
	o = o.withDefaults()
	base := time.Duration(o.BaseRetryDelaySeconds) * time.Second
	if !o.UseExponentialBackoff {
		return min(base, o.MaxRetryDelay)
	}
	doublings := min(max(retryCount, 0), maxDoublings)
	if base > o.MaxRetryDelay>>doublings {
		return o.MaxRetryDelay
	}
	return base << doublings
}

// Delay returns the delay after this many failures. With exponential back-off it is the share draw, a random number in
// [0, 1), of Ceiling (full jitter). So the mean delay after the first failure is the base, and messages that failed
// together are not retried together.
func (o Options) Delay(retryCount int, draw float64) time.Duration {
	ceiling := o.Ceiling(retryCount)
	if !o.UseExponentialBackoff {
		return ceiling
	}
	return time.Duration(float64(ceiling) * draw)
}
