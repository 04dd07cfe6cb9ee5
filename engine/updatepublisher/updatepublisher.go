// Package updatepublisher is the publisher's engine that notifies managed instances of updates (standard, section 4:
// the operations evaluate and notify). Evaluate reads the registry, page by page, and finds the instances that do not
// have the version of their ring; Notify makes the event for each of them, which leaves through the outbox. A timer
// (Every) or a message starts a run. Managed applications report about their instances by messages, too, and Report
// records them.
//
// A slot of the timer is evaluated once, however often the timer fires for it, and an instance is notified of a
// version once within the outbox's retention, unless a message asks for it again. A report behind a newer one changes
// nothing, and a report about a locked instance waits. A report is one write, so it takes no lock itself.
//
// Storage keys: it reads the registry's field "ring", and writes "version" (the current version), "lastUpdate" (a
// LastUpdate) and "health" (a Health), all as reported by the managed application. It owns no table.
package updatepublisher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
)

// Engine is the engine's name (standard, section 2, "Engine Values"), and Queue its message queue. The standard gives
// it no queue; this one is between its timer and itself.
const (
	Engine = "update-publisher"
	Queue  = "update-publisher-queue"
)

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationEvaluate = "evaluate"
	OperationNotify   = "notify"
	// OperationReport records a managed application's report about an instance. It is not in the standard.
	OperationReport = "report"
)

// ErrInput: the message is malformed; repeating it cannot help. Distinguish it with errors.Is.
var ErrInput = errors.New("invalid input")

// Release is the release of a ring.
type Release struct {
	// Ring is the ring's name, and Version the version: 1 to 64 letters, digits and . _ + - each.
	Ring    string `json:"ring"`
	Version string `json:"version"`
	// Released is when the release was made. It orders releases whose versions have no order, and is passed on.
	Released time.Time `json:"released,omitzero"`
	// Components are the components of the version in the order of their updates, at most 50. They are passed on.
	Components []release.Component `json:"components,omitempty"`
}

// ParseReleases parses releases from a JSON array, strictly; "" is none. Config.Validate checks their values.
func ParseReleases(text string) ([]Release, error) {
	if text == "" {
		return nil, nil
	}
	var releases []Release
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&releases); err != nil {
		return nil, fmt.Errorf("releases: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("releases: there is something behind the JSON array")
	}
	return releases, nil
}

// Registry is the part of the registry that the engine uses; *registry.Registry implements it.
type Registry interface {
	Get(ctx context.Context, instanceID string) (registry.Instance, error)
	List(ctx context.Context, limit int, next string) (registry.Page, error)
	Update(ctx context.Context, instanceID, jobID string, change func(*registry.Instance) error) (registry.Instance, error)
}

// DefaultRing is the default of Config.DefaultRing.
const DefaultRing = "stable"

// DefaultPage is the default of Config.Page.
const DefaultPage = 200

// Config configures the engine. Registry is required.
type Config struct {
	Registry Registry
	// Releases are the releases of the rings, each ring once. An instance of another ring is not notified.
	Releases []Release
	// DefaultRing is the ring of instances without one; default DefaultRing.
	DefaultRing string
	// Wanted, if it is set, reports whether an instance is notified of updates at all, for example because it is not
	// being removed.
	Wanted func(registry.Instance) (bool, error)
	// Page is the number of instances to evaluate at a time; default DefaultPage, at most registry.MaxPage.
	Page int
	// Now is the clock for checks of reports' times; default time.Now.
	Now func() time.Time
}

const maxComponents = 50

// word matches valid names and versions: receivers make them parts of paths.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("updatepublisher: "+format, args...))
	}
	if c.Registry == nil {
		complain("Config.Registry is required")
	}
	if c.DefaultRing != "" && !word.MatchString(c.DefaultRing) {
		complain("the default ring %.80q", c.DefaultRing)
	}
	if c.Page < 0 || c.Page > registry.MaxPage {
		complain("a page of %d: 1 to %d", c.Page, registry.MaxPage)
	}
	rings := map[string]bool{}
	for _, r := range c.Releases {
		if !word.MatchString(r.Ring) || !word.MatchString(r.Version) {
			complain("the release %.80q of ring %.80q", r.Version, r.Ring)
		}
		if rings[r.Ring] {
			complain("the ring %.80q has two releases", r.Ring)
		}
		rings[r.Ring] = true
		errs = append(errs, r.validateComponents())
	}
	return errors.Join(errs...)
}

func (r Release) validateComponents() error {
	var errs []error
	if len(r.Components) > maxComponents {
		errs = append(errs, fmt.Errorf("updatepublisher: ring %.80q: %d components, %d are allowed", r.Ring, len(r.Components), maxComponents))
	}
	seen := map[string]bool{}
	for _, c := range r.Components {
		if !word.MatchString(c.Name) || !word.MatchString(c.Version) || seen[c.Name] {
			errs = append(errs, fmt.Errorf("updatepublisher: ring %.80q: component %.80q in version %.80q, which has to be there once", r.Ring, c.Name, c.Version))
		}
		seen[c.Name] = true
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.DefaultRing == "" {
		c.DefaultRing = DefaultRing
	}
	if c.Page == 0 {
		c.Page = DefaultPage
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Releases = slices.Clone(c.Releases)
	return c
}

// Steps are the engine's steps, to be registered as activities. They are safe for concurrent use.
type Steps struct{ config Config }

// New validates the configuration and returns the steps over it.
func New(c Config) (*Steps, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Steps{c.withDefaults()}, nil
}

// The fields of the registry's documents that the engine reads and writes.
const (
	fieldVersion    = "version"
	fieldLastUpdate = "lastUpdate"
	fieldHealth     = "health"
)

// state is the part of an instance's document that the engine uses.
type state struct {
	// ring is the ring of the instance, and has its current version.
	ring, has string
	// wants is the release of the ring; known means that it has one.
	wants Release
	known bool
}

// due reports whether the instance has to be notified of the release.
func (s state) due() bool { return s.known && release.Outdated(s.has, s.wants.Version) }

// look reads an instance; false is one that is never notified of updates.
func (s *Steps) look(i registry.Instance) (state, bool, error) {
	if s.config.Wanted != nil {
		if wanted, err := s.config.Wanted(i); err != nil || !wanted {
			return state{}, false, err
		}
	}
	ring, ringErr := i.Ring()
	out := state{ring: cmp.Or(ring, s.config.DefaultRing)}
	_, versionErr := i.Field(fieldVersion, &out.has)
	if err := errors.Join(ringErr, versionErr); err != nil {
		return state{}, false, err
	}
	at := slices.IndexFunc(s.config.Releases, func(r Release) bool { return r.Ring == out.ring })
	if out.known = at >= 0; out.known {
		out.wants = s.config.Releases[at]
	}
	return out, true, nil
}
