// Package sources selects the package that reads a poller's source by the dialect in its definition. It owns no storage
// keys.
package sources

import (
	"encoding/json"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/logicalsource"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Config is the definition of a source, without its connection string.
type Config interface {
	// Definition returns the definition of the source.
	Definition() poller.Definition
	// Validate returns the errors of the definition that do not depend on the connection string.
	Validate() error
	// Open makes the source. It does not connect.
	Open(dsn string) (poller.Source, error)
}

// Decode reads the definition of a source, as in ROUNDHOUSE_POLLERS.
func Decode(text []byte) (Config, error) {
	var which struct {
		Dialect string `json:"dialect"`
	}
	// The decoder of the rest reports its errors.
	if json.Unmarshal(text, &which) == nil && which.Dialect == logicalsource.Dialect {
		c, err := logicalsource.Decode(text)
		return logical{c}, err
	}
	c, err := sqlsource.Decode(text)
	return table{c}, err
}

// anyDSN is a placeholder for the connection string.
const anyDSN = "any"

// table is a table or query.
type table struct{ sqlsource.Config }

// Validate returns the errors of the definition.
func (t table) Validate() error {
	t.DSN = anyDSN
	return t.Config.Validate()
}

// Open makes the source.
func (t table) Open(dsn string) (poller.Source, error) {
	t.DSN = dsn
	s, err := sqlsource.Open(t.Config)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// logical is a replication slot.
type logical struct{ logicalsource.Config }

// Validate returns the errors of the definition.
func (l logical) Validate() error {
	l.DSN = anyDSN
	return l.Config.Validate()
}

// Open makes the source.
func (l logical) Open(dsn string) (poller.Source, error) {
	l.DSN = dsn
	s, err := logicalsource.Open(l.Config)
	if err != nil {
		return nil, err
	}
	return s, nil
}
