package logstest

import (
	"bytes"
	"sync"
)

// Output stores a log. Handlers, including those of timers, may write to it while a test reads it.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

// String returns the written text.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// Bytes returns a copy of the written text.
func (o *Output) Bytes() []byte { return []byte(o.String()) }

// Reset deletes the written text.
func (o *Output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffer.Reset()
}
