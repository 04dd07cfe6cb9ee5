// Package drill runs processes of a test binary: nodes that a test stops, continues and kills while they work. A node
// reads its configuration from the environment, writes its output as lines of JSON, and ends with its standard input,
// so that it does not outlive the test. The package owns no storage keys.
package drill

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Node is a process that writes values of type Line.
type Node[Line any] struct {
	Name  string
	Stdin io.WriteCloser

	cmd    *exec.Cmd
	output sync.WaitGroup
	mu     sync.Mutex
	lines  []Line
}

// Launch starts this test binary as a node, with its configuration in the environment variable env. The node is killed
// when the test ends, and a failed test shows the end of its log.
func Launch[Line any](t *testing.T, name, env string, config any) *Node[Line] {
	t.Helper()
	n := &Node[Line]{Name: name, cmd: exec.Command(os.Args[0])}
	document, err1 := json.Marshal(config)
	log, err2 := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Kill()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the log of %s:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	n.cmd.Env = append(os.Environ(), env+"="+string(document))
	n.cmd.Stderr = log
	stdout, err1 := n.cmd.StdoutPipe()
	n.Stdin, err2 = n.cmd.StdinPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.output.Go(func() { n.listen(stdout) })
	return n
}

// listen reads the node's output until the node has ended. It skips lines that are not JSON, such as a panic.
func (n *Node[Line]) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line Line
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			n.mu.Lock()
			n.lines = append(n.lines, line)
			n.mu.Unlock()
		}
	}
}

// Lines returns the node's output so far.
func (n *Node[Line]) Lines() []Line {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// Await waits for a line that is accepted by is, and returns the first one.
func (n *Node[Line]) Await(t *testing.T, what string, is func(Line) bool) (found Line) {
	t.Helper()
	testenv.Until(t, n.Name+": "+what, func() bool {
		lines := n.Lines()
		i := slices.IndexFunc(lines, is)
		if i >= 0 {
			found = lines[i]
		}
		return i >= 0
	})
	return found
}

// Signal sends a signal to the node.
func (n *Node[Line]) Signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// End closes the node's standard input and waits until it has finished without an error.
func (n *Node[Line]) End(t *testing.T) {
	t.Helper()
	if err := n.Stdin.Close(); err != nil {
		t.Error(err)
	}
	n.output.Wait()
	if err := n.cmd.Wait(); err != nil {
		t.Errorf("%s: %v", n.Name, err)
	}
}

// Kill kills the node as kill -9 does, and waits for its end. It does nothing for a node that has ended or never
// started.
func (n *Node[Line]) Kill() {
	if n.cmd.Process != nil {
		_ = n.cmd.Process.Kill() // it may be dead already
		n.output.Wait()
		_ = n.cmd.Wait() // the error is that of the kill
	}
}
