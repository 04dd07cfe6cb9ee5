package poller

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// logPosition is what the text of a LogPosition looks like.
var logPosition = regexp.MustCompile(`^([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})(:[0-9]{1,19})?$`)

// LogPosition is a place in the log of a database from which transactions are read in the order of their commits. It is the value of
// cursors of the kind lsn, as text: 16/B374D848 is in front of all transactions whose commit is there or later, and 16/B374D848:12 behind
// the twelfth change of the transaction whose commit is there.
type LogPosition struct {
	// LSN is where the commit is, and Change the number of the change within its transaction, from 1; 0 is in front of all of them.
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

// String is the text, which has no number when that is 0.
func (p LogPosition) String() string {
	text := fmt.Sprintf("%X/%X", p.LSN>>32, uint32(p.LSN))
	if p.Change > 0 {
		text += ":" + strconv.FormatUint(p.Change, 10)
	}
	return text
}

// Compare is -1 when p is in front of o, 1 when it is behind it, and 0 when they are the same.
func (p LogPosition) Compare(o LogPosition) int {
	return cmp.Or(cmp.Compare(p.LSN, o.LSN), cmp.Compare(p.Change, o.Change))
}
