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

// Reader reads settings out of the environment. What is missing or wrong is collected, so that whoever sets up an app learns
// of everything at once: a read that fails gives the fallback, and Err tells.
//
// An empty variable counts as one that is not set, and space around a value as not there. No error repeats a value that may
// be a secret or hold one.
type Reader struct {
	// Development says that the storage account is the emulator: what an app in Azure has to set may then be missing.
	Development bool
	// Environment are the names of all variables that are set, as far as they are known.
	Environment []string

	lookup func(name string) (string, bool)

	mu       sync.Mutex
	names    map[string]bool
	required map[string]bool
	roles    []Role
	errs     []error
}

// NewReader reads through lookup, as os.LookupEnv does it.
func NewReader(lookup func(name string) (string, bool)) *Reader {
	return &Reader{lookup: lookup, names: map[string]bool{}, required: map[string]bool{}}
}

// Err is everything that is missing or wrong so far, one a line; nil when there is nothing.
func (r *Reader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// Names are the settings that were asked for, sorted, whether they are set or not.
func (r *Reader) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}

// Demanded are the settings that an app in Azure cannot do without, sorted, whether they are set or not. The storage account, of
// which there are several forms, is not among them.
func (r *Reader) Demanded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.required))
}

// demand notes that an app in Azure cannot do without a setting.
func (r *Reader) demand(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.required[name] = true
}

// Reject notes what is wrong with a setting, in words that go on behind its name: "set a number". nil notes nothing.
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
		// A setting that is read by several engines is wrong once.
		if err != nil && !slices.ContainsFunc(r.errs, func(known error) bool { return known.Error() == err.Error() }) {
			r.errs = append(r.errs, err)
		}
	}
}

// Text is a setting's text, "" when it is not set.
func (r *Reader) Text(name string) string {
	value, _ := r.find(name)
	return strings.TrimSpace(value)
}

// find looks a variable up and remembers its name.
func (r *Reader) find(name string) (string, bool) {
	r.mu.Lock()
	r.names[name] = true
	r.mu.Unlock()
	return r.lookup(name)
}

// Required is the text of a setting that an app in Azure cannot do without; with the emulator it may be missing. what says
// what to set, as in "the address of the ledger".
func (r *Reader) Required(name, what string) string {
	r.demand(name)
	text := r.Text(name)
	if text == "" && !r.Development {
		r.Reject(name, fmt.Errorf("it is not set: set it to %s", what))
	}
	return text
}

// Duration is a Go duration of least or more.
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

// List is a list of texts with commas between them; nil when it is not set.
func (r *Reader) List(name string) []string {
	var list []string
	for item := range strings.SplitSeq(r.Text(name), ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// URL is an https address with a host and without a user, without a slash at its end. With the emulator it may be http.
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

// JSON reads one JSON value into v, without members that v does not have, and says whether it did.
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
