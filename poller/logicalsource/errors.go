package logicalsource

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// What can be wrong beside what package sqlsource names: ErrConnection, ErrLogin and ErrWentBack of that come from here, too. The text
// says what to do.
var (
	// ErrSetup says that server, user, publication, slot or a table is not set up for this.
	ErrSetup = errors.New("the database is not set up for logical decoding")
	// ErrSlotLost says that the slot has lost changes that were not read: the server has invalidated it, or it was made anew or moved.
	ErrSlotLost = errors.New("the replication slot has lost changes")
	// ErrSlotBusy says that somebody else reads the slot.
	ErrSlotBusy = errors.New("somebody else reads the replication slot")
	// ErrMessage says that the server has sent what cannot be read.
	ErrMessage = errors.New("a message of logical decoding cannot be read")
)

// wrong names the operation and the slot in an error, and takes secrets out.
func (s *Source) wrong(operation string, err error) error {
	return sqlsource.PostgresError(operation, Dialect+" "+s.config.object(), err, s.secrets, ErrSetup, ErrSlotLost, ErrSlotBusy, ErrMessage)
}

// hasCode says whether the database has answered with one of these codes.
func hasCode(err error, codes ...string) bool { return slices.Contains(codes, codeOf(err)) }

// hasClass says whether the code of the answer begins with one of these.
func hasClass(err error, classes ...string) bool {
	code := codeOf(err)
	return len(code) == 5 && slices.Contains(classes, code[:2])
}

// codeOf is the code that the database has answered with, "" for none.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
