package logicalsource

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// The errors of this package, besides ErrConnection, ErrLogin and ErrWentBack of package sqlsource. The text has the
// remedy.
var (
	// ErrSetup means that server, user, publication, slot or a table is not set up for logical decoding.
	ErrSetup = errors.New("the database is not set up for logical decoding")
	// ErrSlotLost means that the slot has lost unread changes: the server has invalidated it, or it was recreated or
	// moved.
	ErrSlotLost = errors.New("the replication slot has lost changes")
	// ErrSlotBusy means that another session reads the slot.
	ErrSlotBusy = errors.New("somebody else reads the replication slot")
	// ErrMessage means that the server has sent an unreadable message.
	ErrMessage = errors.New("a message of logical decoding cannot be read")
)

// wrong adds the operation and the slot to an error, and removes secrets.
func (s *Source) wrong(operation string, err error) error {
	return sqlsource.PostgresError(operation, Dialect+" "+s.config.object(), err, s.secrets, ErrSetup, ErrSlotLost, ErrSlotBusy, ErrMessage)
}

// hasCode reports whether the database returned one of these codes.
func hasCode(err error, codes ...string) bool { return slices.Contains(codes, codeOf(err)) }

// hasClass reports whether the returned code begins with one of these.
func hasClass(err error, classes ...string) bool {
	code := codeOf(err)
	return len(code) == 5 && slices.Contains(classes, code[:2])
}

// codeOf returns the code from the database, "" for none.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
