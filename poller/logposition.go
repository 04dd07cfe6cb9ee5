package poller

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// logPosition matches the text of a LogPosition.
var logPosition = regexp.MustCompile(`^([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})(:[0-9]{1,19})?$`)

// LogPosition is a position in the log of a database from which transactions are read in the order of their commits. It
// is the value of cursors of the kind lsn, as text: 16/B374D848 is before all transactions with a commit at that
// position or later, and 16/B374D848:12 is after the twelfth change of the transaction with that commit.
type LogPosition struct {
	// LSN is the position of the commit, and Change the number of the change within its transaction, from 1; 0 is before
	// all of them.
	LSN, Change uint64
}

// ParseLogPosition reads the text of a LogPosition.
func ParseLogPosition(text string) (p LogPosition, ok bool) {
	parts := logPosition.FindStringSubmatch(text)
	if parts == nil {
		return p, false
	}
	high, errHigh := strconv.ParseUint(parts[1], 16, 32)
	low, errLow := strconv.ParseUint(parts[2], 16, 32)
	p.LSN = high<<32 | low
	var errChange error
	if number, given := strings.CutPrefix(parts[3], ":"); given {
		p.Change, errChange = strconv.ParseUint(number, 10, 64)
	}
	return p, errHigh == nil && errLow == nil && errChange == nil
}

// String returns the text, which has no number when that is 0.
func (p LogPosition) String() string {
	text := fmt.Sprintf("%X/%X", p.LSN>>32, uint32(p.LSN))
	if p.Change > 0 {
		text += ":" + strconv.FormatUint(p.Change, 10)
	}
	return text
}

// Compare returns -1 when p is before o, 1 when it is after it, and 0 when they are equal.
func (p LogPosition) Compare(o LogPosition) int {
	return cmp.Or(cmp.Compare(p.LSN, o.LSN), cmp.Compare(p.Change, o.Change))
}
