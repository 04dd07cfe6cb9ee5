package hosts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Host is one life of a host process.
type Host struct {
	command *exec.Cmd
	input   io.WriteCloser
	log     *os.File
	ready   chan struct{}
	ended   chan struct{}

	mu   sync.Mutex
	url  string
	held map[string]note // by message id
}

// launch starts a host process, which writes its log and its handler's to a file.
func launch(c hostConfig, log *os.File) (*Host, error) {
	program, err1 := os.Executable()
	document, err2 := json.Marshal(c)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("start a host: %w", err)
	}
	h := &Host{command: exec.Command(program), log: log, ready: make(chan struct{}), ended: make(chan struct{}), held: map[string]note{}}
	h.command.Env = append(os.Environ(), roleVariable+"="+roleHost, configVariable+"="+string(document))
	h.command.Stderr = log
	output, err1 := h.command.StdoutPipe()
	h.input, err2 = h.command.StdinPipe()
	err := errors.Join(err1, err2)
	if err == nil {
		err = h.command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a host: %w", err)
	}
	go h.listen(output)
	return h, nil
}

// listen reads the host's notes until it has ended.
func (h *Host) listen(output io.Reader) {
	defer close(h.ended)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n note
		if json.Unmarshal(lines.Bytes(), &n) == nil {
			h.hear(n)
		}
	}
	_ = h.command.Wait() // how it ended is irrelevant: most are killed
	_ = h.log.Close()
}

func (h *Host) hear(n note) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n.Kind {
	case noteReady:
		h.url = n.URL
		close(h.ready)
	case noteReceived:
		h.held[n.Message] = n
	case noteDeleted, noteReleased:
		delete(h.held, n.Message)
	}
}

// Ready waits until the app answers that it is ready.
func (h *Host) Ready(ctx context.Context) error {
	select {
	case <-h.ready:
		return nil
	case <-h.ended:
		return fmt.Errorf("the host ended before it was ready: see %s", h.log.Name())
	case <-ctx.Done():
		return fmt.Errorf("wait until the host is ready: %w: see %s", ctx.Err(), h.log.Name())
	}
}

// URL returns the address of the host, once it is ready.
func (h *Host) URL() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.url
}

// Held returns the orchestrations of the received messages that are not settled: those of the engine's queue, and the
// targets of signals.
func (h *Host) Held() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[string]bool{}
	var all []string
	for _, n := range h.held {
		if id := orchestrationOf(n); id != "" && !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	return all
}

// orchestrationOf returns the orchestration of a message, "" without one.
func orchestrationOf(n note) string {
	if n.Queue == Queue {
		var m engine.Message
		if json.Unmarshal(n.Body, &m) != nil {
			return ""
		}
		return ID(m.CorrelationID)
	}
	s, err := orchestrator.DecodeSignal(n.Body)
	if err != nil {
		return ""
	}
	return s.InstanceID
}

// Kill kills the host and its handler together, like kill -9 or the loss of a machine.
func (h *Host) Kill() {
	_ = h.command.Process.Kill() // an ended one is fine, too
	<-h.ended
}

// KillHandler kills only the handler; the host starts another one.
func (h *Host) KillHandler() error {
	if _, err := fmt.Fprintln(h.input, killHandler); err != nil {
		return fmt.Errorf("kill the handler: %w", err)
	}
	return nil
}

// EndHandler shuts down only the handler; the host starts another one.
func (h *Host) EndHandler() error {
	if _, err := fmt.Fprintln(h.input, endHandler); err != nil {
		return fmt.Errorf("end the handler: %w", err)
	}
	return nil
}

// Terminate shuts the host down, as a platform does that moves an app.
func (h *Host) Terminate() error {
	if err := h.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the host: %w", err)
	}
	return nil
}

// Ended returns a channel that is closed when the host has ended.
func (h *Host) Ended() <-chan struct{} { return h.ended }

// Freeze stops the host and its handler where they are, until Thaw.
func (h *Host) Freeze() error { return h.signalAll(syscall.SIGSTOP) }

// Thaw resumes a frozen host and its handler.
func (h *Host) Thaw() error { return h.signalAll(syscall.SIGCONT) }

// signalAll signals the host and its child processes, which Linux lists by thread.
func (h *Host) signalAll(s syscall.Signal) error {
	pid := h.command.Process.Pid
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	errs := []error{err, syscall.Kill(pid, s)}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		errs = append(errs, err)
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			errs = append(errs, err)
			if err == nil {
				errs = append(errs, syscall.Kill(child, s))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("send %v to the processes of a host: %w", s, err)
	}
	return nil
}
