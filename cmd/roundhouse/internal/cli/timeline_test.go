package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// watched is output that signals when it contains a text for the first time.
type watched struct {
	mu   sync.Mutex
	all  bytes.Buffer
	text string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := strings.Contains(w.all.String(), w.text)
	n, err := w.all.Write(p)
	if !had && strings.Contains(w.all.String(), w.text) {
		close(w.seen)
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// follow follows a timeline, calls then when it shows a text, and returns the exit code and the output.
func (w *world) follow(t *testing.T, text string, then func(signals chan<- os.Signal), args ...string) (int, string) {
	t.Helper()
	out := &watched{text: text, seen: make(chan struct{})}
	signals := make(chan os.Signal, 1)
	m, _, _ := w.main(nil)
	m.Stdout, m.Signals = out, signals
	code := make(chan int)
	go func() {
		code <- m.Run(t.Context(), append(strings.Fields("timeline run-h --follow --interval 1ms"), args...))
	}()
	<-out.seen
	then(signals)
	return <-code, out.String()
}

// A timeline is followed until its run has ended, and each item is shown once in each of its states.
func TestFollowTimeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attempt(t, "hmac-1", true)
	code, out := w.follow(t, "Retrying", func(chan<- os.Signal) { w.attempt(t, "hmac-1", false) })
	if code != 0 || strings.Count(out, "AttemptFailed") != 2 || strings.Count(out, "AttemptBegan") != 1 || strings.Count(out, "orchestration  Failed") != 1 {
		t.Errorf("%d\n%s", code, out)
	}
	w.leave()
}

// An interruption ends it with its own exit code; with JSON, each line is an item.
func TestFollowTimelineInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attempt(t, "hmac-1", true)
	code, out := w.follow(t, "Retrying", func(signals chan<- os.Signal) { signals <- os.Interrupt }, "-o", "json", "--kind", "orchestration")
	if code != 130 || !json.Valid([]byte(strings.TrimSpace(out))) {
		t.Errorf("%d\n%s", code, out)
	}
	for args, text := range map[string]string{"--interval 0s": "more than 0", "--storage settings": "asks the app"} {
		w.want(t, 2, []string{text}, append(strings.Fields("timeline run-h --follow"), strings.Fields(args)...)...)
	}
	w.leave()
}

// A line fits the terminal with any error text, and has no control character.
func TestFollowedLinesFit(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := &follower{app: &app{Main: Main{Stdout: &out}, screen: screen{width: 80}}}
	item := client.TimelineItem{Kind: "change", Change: &client.OrchestrationChange{What: "AttemptFailed", OrchestrationID: strings.Repeat("\u00e9", 100), Error: &client.Failure{Message: "a\x1b[31m\nb"}}}
	testenv.OK(t, f.show(item, nil, nil))
	if line := strings.TrimSuffix(out.String(), "\n"); utf8.RuneCountInString(line) > 80 || strings.ContainsAny(line, "\x1b\n") {
		t.Errorf("%q", line)
	}
}
