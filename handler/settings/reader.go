package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
)

// Reader reads settings from the environment. It collects missing and invalid settings, so that the operator gets all
// errors together: a failed read returns the fallback, and Err returns the errors.
//
// An empty variable counts as unset, and space around a value is ignored. No error repeats a value that may be or
// contain a secret.
type Reader struct {
	// Development means that the storage account is the emulator: settings that an app in Azure requires are then
	// optional.
	Development bool
	// Environment has the names of all set variables, if known.
	Environment []string

	lookup func(name string) (string, bool)

	mu       sync.Mutex
	names    map[string]bool
	required map[string]bool
	roles    []Role
	errs     []error
}

// NewReader reads through lookup, like os.LookupEnv.
func NewReader(lookup func(name string) (string, bool)) *Reader {
	return &Reader{lookup: lookup, names: map[string]bool{}, required: map[string]bool{}}
}

// Err returns all errors so far, one on each line; nil for none.
func (r *Reader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// Names returns the sorted names of the settings that were read, set or not.
func (r *Reader) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}

// Demanded returns the sorted names of the settings that an app in Azure requires, set or not. The storage account,
// of which there are several forms, is not among them.
func (r *Reader) Demanded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.required))
}

// demand records that an app in Azure requires a setting.
func (r *Reader) demand(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.required[name] = true
}

// Reject records the error in a setting, in words that follow its name: "set a number". nil records nothing.
func (r *Reader) Reject(name string, err error) {
	if err != nil {
		r.note(fmt.Errorf("%s: %w", name, err))
	}
}

// note adds errors that name their settings themselves.
func (r *Reader) note(errs ...error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range errs {
		// A setting that several engines read is one error.
		if err != nil && !slices.ContainsFunc(r.errs, func(known error) bool { return known.Error() == err.Error() }) {
			r.errs = append(r.errs, err)
		}
	}
}

// Text returns a setting's text, "" if it is unset.
func (r *Reader) Text(name string) string {
	value, _ := r.find(name)
	return strings.TrimSpace(value)
}

// find looks a variable up and records its name.
func (r *Reader) find(name string) (string, bool) {
	r.mu.Lock()
	r.names[name] = true
	r.mu.Unlock()
	return r.lookup(name)
}

// Required returns the text of a setting that an app in Azure requires; with the emulator it is optional. what
// describes the value, as in "the address of the ledger".
func (r *Reader) Required(name, what string) string {
	r.demand(name)
	text := r.Text(name)
	if text == "" && !r.Development {
		r.Reject(name, fmt.Errorf("it is not set: set it to %s", what))
	}
	return text
}

// Duration returns a Go duration of least or more.
func (r *Reader) Duration(name string, fallback, least time.Duration) time.Duration {
	text := r.Text(name)
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least {
		r.Reject(name, fmt.Errorf("set a Go duration of %v or more, such as 24h", least))
		return fallback
	}
	return d
}

// List returns a comma-separated list of texts; nil if it is unset.
func (r *Reader) List(name string) []string {
	var list []string
	for item := range strings.SplitSeq(r.Text(name), ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// URL returns an https address with a host and without a user, without a slash at its end. With the emulator it may
// be http.
func (r *Reader) URL(name, fallback string) string {
	text := r.Text(name)
	if text == "" {
		return fallback
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (!r.Development || u.Scheme != "http") {
		r.Reject(name, errors.New("set an https address, without a user name in it"))
		return fallback
	}
	return strings.TrimSuffix(text, "/")
}

// JSON reads one JSON value into v, without unknown members, and reports whether it succeeded.
func (r *Reader) JSON(name string, v any) bool {
	text := r.Text(name)
	if text == "" {
		return false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is something behind the JSON value")
		}
	}
	if err != nil {
		r.Reject(name, fmt.Errorf("it is not the JSON document that docs/settings.md describes: %w", payload.Explain(err)))
		return false
	}
	return true
}
