package orchestrator

import (
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
)

// appendPadded appends a number, padded with zeros to eight digits, so that keys are in order.
func appendPadded(b []byte, n int) []byte {
	for least := 10_000_000; least > max(n, 1); least /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// commitTokens makes texts by which a commit recognises its own row. They are unique across all processes. The zero
// value is ready to use.
type commitTokens struct {
	once  sync.Once
	first string // random; the beginning of all tokens of this process
	count atomic.Int64
}

func (t *commitTokens) next() string {
	var room [48]byte
	return string(t.append(room[:0]))
}

// append appends the next token.
func (t *commitTokens) append(b []byte) []byte {
	t.once.Do(func() { t.first = rand.Text() + "-" })
	return strconv.AppendInt(append(b, t.first...), t.count.Add(1), 36)
}
