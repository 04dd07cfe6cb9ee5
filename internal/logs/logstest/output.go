package logstest

import (
	"bytes"
	"sync"
)

// Output takes what is logged. Handlers write to it from timers, too, while a test reads it.
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

// String is what was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// Bytes is a copy of what was written.
func (o *Output) Bytes() []byte { return []byte(o.String()) }

// Reset forgets what was written.
func (o *Output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffer.Reset()
}
