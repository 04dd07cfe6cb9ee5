package settings

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/outbox"
)

const (
	// outboxSetting is the JSON document of destinations and routes, and the prefix of the outbox's other settings.
	outboxSetting = "ROUNDHOUSE_OUTBOX"
	// defaultRetention is the default retention of processed events.
	defaultRetention = 30 * 24 * time.Hour
)

// Outbox holds all settings of the outbox.
type Outbox struct {
	// Options are the outbox's (ROUNDHOUSE_OUTBOX_BATCH_SIZE and so on, see docs/settings.md).
	Options outbox.Options
	// Retention is the retention of processed and skipped events (ROUNDHOUSE_OUTBOX_RETENTION, a Go duration of an
	// hour or more; 30 days unless set).
	Retention time.Duration
	// Destinations and Routes are those of ROUNDHOUSE_OUTBOX. With the storage emulator it may be missing: then every
	// event goes to the log.
	Destinations map[string]Destination
	Routes       []outbox.Route
}

// outboxOption is a setting of the outbox that is one value.
type outboxOption struct {
	suffix string
	set    func(o *Outbox, text string) error
}

// outboxOptions lists the settings by the part of the name after ROUNDHOUSE_OUTBOX_; the first are the outbox
// document's.
func outboxOptions() []outboxOption {
	return []outboxOption{
		{"POLL_INTERVAL_SECONDS", number(func(o *Outbox) *int { return &o.Options.PollIntervalSeconds })},
		{"BATCH_SIZE", number(func(o *Outbox) *int { return &o.Options.BatchSize })},
		{"MAX_RETRIES", number(func(o *Outbox) *int { return &o.Options.MaxRetries })},
		{"BASE_RETRY_DELAY_SECONDS", number(func(o *Outbox) *int { return &o.Options.BaseRetryDelaySeconds })},
		{"USE_EXPONENTIAL_BACKOFF", setBackoff},
		{"MAX_ERROR_TEXT_LENGTH", number(func(o *Outbox) *int { return &o.Options.MaxErrorTextLength })},
		{"MAX_RETRY_DELAY", span(func(o *Outbox) *time.Duration { return &o.Options.MaxRetryDelay })},
		{"MISCONFIGURED_AFTER", span(func(o *Outbox) *time.Duration { return &o.Options.MisconfiguredAfter })},
		{"DELIVERY_TIMEOUT", span(func(o *Outbox) *time.Duration { return &o.Options.DeliveryTimeout })},
		{"CLAIM_DURATION", span(func(o *Outbox) *time.Duration { return &o.Options.ClaimDuration })},
		{"MAX_CONCURRENCY", number(func(o *Outbox) *int { return &o.Options.MaxConcurrency })},
		{"MAX_PER_DESTINATION", number(func(o *Outbox) *int { return &o.Options.MaxPerDestination })},
		{"CIRCUIT_FAILURES", number(func(o *Outbox) *int { return &o.Options.CircuitFailures })},
		{"CIRCUIT_COOLDOWN", span(func(o *Outbox) *time.Duration { return &o.Options.CircuitCooldown })},
		{"METRICS_WINDOW", span(func(o *Outbox) *time.Duration { return &o.Options.MetricsWindow })},
		{"KEY_FORM", setKeyForm},
		{"RETENTION", span(func(o *Outbox) *time.Duration { return &o.Retention })},
	}
}

// number sets a whole number of 1 or more: in the options 0 means the default, which an operator who sets 0 does not
// expect.
func number(field func(*Outbox) *int) func(*Outbox, string) error {
	return func(o *Outbox, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("set a whole number of 1 or more")
		}
		*field(o) = n
		return nil
	}
}

func span(field func(*Outbox) *time.Duration) func(*Outbox, string) error {
	return func(o *Outbox, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return errors.New("set a Go duration of more than 0, such as 30s")
		}
		*field(o) = d
		return nil
	}
}

func setBackoff(o *Outbox, text string) (err error) {
	if o.Options.UseExponentialBackoff, err = strconv.ParseBool(text); err != nil {
		return errors.New("set true or false")
	}
	return nil
}

func setKeyForm(o *Outbox, text string) error {
	forms := map[string]outbox.KeyForm{"length-prefixed": outbox.LengthPrefixed, "document": outbox.Document}
	form, ok := forms[text]
	if !ok {
		return errors.New("set length-prefixed or document")
	}
	o.Options.KeyForm = form
	return nil
}

// outboxFrom reads the settings of the outbox. Destinations are optional only with the emulator.
func outboxFrom(r *Reader, required bool) (Outbox, error) {
	o := Outbox{Options: outbox.DefaultOptions(), Retention: defaultRetention}
	var errs []error
	for _, option := range outboxOptions() {
		name := outboxSetting + "_" + option.suffix
		text := r.Text(name)
		if text == "" {
			continue
		}
		if err := option.set(&o, text); err != nil {
			errs = append(errs, fmt.Errorf("%s is %.64q: %w", name, text, err))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, within(outboxSetting+"_*", o.Options.Validate()))
	}
	if o.Retention < time.Hour {
		errs = append(errs, fmt.Errorf("%s_RETENTION is %v: set an hour or more, such as 720h", outboxSetting, o.Retention))
	}
	r.demand(outboxSetting)
	errs = append(errs, o.readDestinations(r.Text(outboxSetting), required))
	return o, errors.Join(errs...)
}
