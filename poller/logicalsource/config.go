package logicalsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Dialect is the dialect of sources of this package.
const Dialect = "postgres-logical"

// BoundSlot is the bound of sources of this package: the slot keeps uncommitted changes.
const BoundSlot = "slot"

const (
	defaultTimeout = 30 * time.Second
	defaultBehind  = 1 << 30
)

// Config selects the changes, the database and the user. DSN, SourceID, Slot and Publications are required.
type Config struct {
	Dialect string `json:"dialect"`
	// DSN is the connection string in the driver's form. It is never part of an error.
	DSN string `json:"-"`
	// SourceID names the database for operators and for the fingerprint, which also has its address and id.
	SourceID string `json:"sourceId"`
	// Slot is the replication slot, which no other poller may use.
	Slot string `json:"slot"`
	// Publications are the publications whose tables are read.
	Publications []string `json:"publications"`
	// Timeout bounds a statement; 0 means 30 s.
	Timeout time.Duration `json:"timeout,omitempty"`
	// WarnBytes is the size of retained log above which operators are warned; 0 means 1 GiB.
	WarnBytes int64 `json:"warnBytes,omitempty"`
}

// written is a Config in settings: durations as in Go, such as 5s.
type written struct {
	Config
	Timeout string `json:"timeout"`
}

// Decode reads the configuration of a source, except for DSN. It refuses unknown members.
func Decode(text []byte) (Config, error) {
	var w written
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return Config{}, fmt.Errorf("source: %w", err)
	}
	if w.Timeout == "" {
		return w.Config, nil
	}
	var err error
	if w.Config.Timeout, err = time.ParseDuration(w.Timeout); err != nil || w.Config.Timeout <= 0 {
		return Config{}, fmt.Errorf("source: timeout is %.32q: set a Go duration of more than 0, such as 30s", w.Timeout)
	}
	return w.Config, nil
}

// slotName matches PostgreSQL's names of slots.
var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// Validate returns all errors, without querying the database.
func (c Config) Validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Dialect != Dialect, "dialect %q: want %s", c.Dialect, Dialect)
	wrong(c.DSN == "", "a connection string is needed")
	wrong(c.SourceID == "", "sourceId is needed: a name for the database that stays when its host changes")
	wrong(!slotName.MatchString(c.Slot), "slot %.64q: want up to 63 of a-z, 0-9 and _", c.Slot)
	wrong(len(c.Publications) == 0, "publications are needed: they say which tables are read")
	for i, p := range c.Publications {
		wrong(p == "" || strings.Contains(p, "\x00"), "publications: %.64q is no name", p)
		wrong(slices.Contains(c.Publications[:i], p), "publications: %q is named twice", p)
	}
	wrong(c.Timeout < 0, "timeout %v: must not be negative", c.Timeout)
	wrong(c.WarnBytes < 0, "warnBytes %d: must not be negative", c.WarnBytes)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("source %s: %w", c.object(), err)
	}
	return nil
}

// object returns the name of the source for messages.
func (c Config) object() string { return "slot " + c.Slot }

// Definition returns the part of the configuration that determines the changes.
func (c Config) Definition() poller.Definition {
	return poller.Definition{Database: sqlsource.PostgresAddress(c.DSN), Dialect: Dialect, SourceID: c.SourceID, Object: strings.Join(slices.Sorted(slices.Values(c.Publications)), ", "),
		Cursor: "lsn", Keys: []string{}, Bound: BoundSlot, Params: map[string]any{"slot": c.Slot}}
}
