package sqlsource

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
)

// The errors of a source. The text names the object and the remedy.
var (
	// ErrConnection means that the database is unreachable.
	ErrConnection = errors.New("the database cannot be reached")
	// ErrLogin means that the database denies the user the login, or the object.
	ErrLogin = errors.New("the database refuses the user")
	// ErrNoObject means that the table, or one of the query's, does not exist.
	ErrNoObject = errors.New("the table or database is not there")
	// ErrNoColumn means that a column does not exist.
	ErrNoColumn = errors.New("the column is not there")
	// ErrColumnType means that a column's type is unsuitable, or no longer that of the position.
	ErrColumnType = errors.New("the column's type does not fit")
	// ErrNotUnique means that two rows have the same key.
	ErrNotUnique = errors.New("the key is not unique")
	// ErrNull means that the cursor or a key is NULL in some row.
	ErrNull = errors.New("a cursor or key column is NULL")
	// ErrWentBack means that the database is behind the position: it was restored, or its clock or sequence was set back.
	ErrWentBack = errors.New("the cursor went back")
	// ErrBound means that the bound cannot be kept here.
	ErrBound = errors.New("the bound cannot be kept")
)

// errReadOnly is the error of a copy of a database, which does not see the writers.
var errReadOnly = fmt.Errorf("%w: the database is read only, so it is a replica, which does not see the primary's transactions: read from the primary", ErrBound)

// sourceError hides the driver's error: its text, and the errors that it wraps, may contain the connection string.
type sourceError struct {
	kind, cause error
	text        string
}

// Error names the operation, the dialect, the object and the remedy, and has no secret.
func (e *sourceError) Error() string { return e.text }

// Unwrap returns the sentinel and, if it was the cause, the end of the context.
func (e *sourceError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.kind, e.cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// fail adds the operation and the object, translates the database's error and removes secrets.
func (s *Source) fail(op string, err error) error {
	return failure(op, s.config.Dialect+" "+s.config.object(), err, s.dialect.explain, s.secrets, kinds())
}

// failure returns the error of an operation on an object. kinds are the sentinels that it keeps, and explain translates
// the driver's errors.
func failure(op, object string, err error, explain func(error) (string, error), secrets []string, kinds []error) error {
	if err == nil {
		return nil
	}
	e := &sourceError{}
	hint := ""
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			e.cause = end
		}
	}
	if k := kindOf(err, kinds); k != nil {
		e.kind = k
	} else if hint, e.kind = explain(err); e.kind == nil && unreachable(err) {
		e.kind, hint = ErrConnection, "check host, port and network"
	}
	text := fmt.Sprintf("%s %s: %s", op, object, err)
	if hint != "" {
		text = fmt.Sprintf("%s %s: %s: %s (%s)", op, object, e.kind, hint, err)
	}
	e.text = scrub(text, secrets)
	return e
}

// kinds returns the sentinels of this package.
func kinds() []error {
	return []error{ErrConnection, ErrLogin, ErrNoObject, ErrNoColumn, ErrColumnType, ErrNotUnique, ErrNull, ErrWentBack, ErrBound}
}

// kindOf returns the sentinel in an error.
func kindOf(err error, kinds []error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k
		}
	}
	return nil
}

func unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn)
}

// malformed returns the error of an unusable connection string. The text of a driver's parser is left out: it may quote
// the string.
func malformed(before, dialect string, err error) error {
	text := before + "the connection string is not one of the " + dialect + " driver's form"
	if known, ok := errors.AsType[dsnError](err); ok {
		text += ": " + known.Error()
	}
	return &sourceError{kind: ErrConnection, text: text}
}

// longUser is the length from which a user without a password is replaced everywhere. A shorter one is replaced only
// where drivers and servers show a user, because a text without all of its letters is unreadable.
const longUser = 8

// credentials returns the secrets of a user and a password. Without a password, the user may be a misplaced
// password.
func credentials(user, password string) []string {
	if password != "" || user == "" {
		return []string{password}
	}
	secrets := []string{`"` + user + `"`, "'" + user + "'", "user=" + user}
	if len(user) >= longUser {
		secrets = append(secrets, user)
	}
	return secrets
}

// scrub takes secrets out of a text.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}
