package localhost

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// maxLine bounds the kept part of an unfinished line.
const maxLine = 64 << 10

// console passes the handler's standard output and error on line by line, to out if set, otherwise to log.
type console struct {
	out            io.Writer
	log            *slog.Logger
	errorsOnStderr bool

	mu         sync.Mutex
	lastErrors []string // up to three, to explain a crash
}

// line is called for every complete line.
func (c *console) line(stderr bool, line string) {
	level := slog.LevelInfo
	if stderr {
		level = c.stderrLevel(line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if level == slog.LevelError {
		c.lastErrors = append(c.lastErrors[max(0, len(c.lastErrors)-2):], line)
	}
	if c.out != nil {
		// A closed console is no reason to stop the handler.
		_, _ = io.WriteString(c.out, line+"\n")
		return
	}
	c.log.Log(context.Background(), level, line, "source", "handler")
}

// stderrLevel guesses a level from the words of a line, as the real host does.
func (c *console) stderrLevel(line string) slog.Level {
	lower := strings.ToLower(line)
	if strings.Contains(lower, "warn") {
		return slog.LevelWarn
	}
	if c.errorsOnStderr {
		return slog.LevelError
	}
	for _, word := range []string{"error", "fail", "severe", "unhandled exception"} {
		if strings.Contains(lower, word) {
			return slog.LevelError
		}
	}
	return slog.LevelInfo
}

// takeErrors returns the last error lines and forgets them.
func (c *console) takeErrors() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lastErrors
	c.lastErrors = nil
	return lines
}

// lineWriter splits one stream of the handler into lines.
type lineWriter struct {
	console *console
	stderr  bool
	partial []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		w.partial = append(w.partial, p[:i]...)
		w.flush()
		p = p[i+1:]
	}
	w.partial = append(w.partial, p...)
	if len(w.partial) >= maxLine {
		w.flush()
	}
	return n, nil
}

// flush passes the remaining text on as a line.
func (w *lineWriter) flush() {
	if len(w.partial) > 0 {
		w.console.line(w.stderr, strings.TrimSuffix(string(w.partial), "\r"))
	}
	w.partial = w.partial[:0]
}
