package queuestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// Bodies at and one below each limit are accepted and read back unchanged. The store itself refuses a body above it,
// names the limit and stores nothing.
func testSweep(t *testing.T, e env) {
	for _, tt := range []struct {
		name        string
		limit, step int
		want        error
		send        func(n int) (want []byte, delay time.Duration)
	}{
		{"bytes of a body", queues.MaxBody, 1, queues.ErrTooLarge, func(n int) ([]byte, time.Duration) { return bytes.Repeat([]byte{'x'}, n), 0 }},
		{"bytes of a body in three each", queues.MaxBody / 3, 1, queues.ErrTooLarge, func(n int) ([]byte, time.Duration) { return bytes.Repeat([]byte("語"), n), 0 }},
		{"seconds of delay", int(queues.MaxDelay / time.Second), 1, queues.ErrInvalid, func(n int) ([]byte, time.Duration) { return []byte("later"), time.Duration(n) * time.Second }},
	} {
		for _, n := range []int{tt.limit - tt.step, tt.limit, tt.limit + tt.step} {
			body, delay := tt.send(n)
			before := e.length(t)
			_, err := e.store.Send(t.Context(), e.queue, body, delay)
			if what := fmt.Sprintf("%d %s", n, tt.name); n > tt.limit {
				wantRefused(t, what, err, tt.want)
				if after := e.length(t); after != before {
					t.Errorf("%s: %d messages, then %d", what, before, after)
				}
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if delay == 0 {
				m := e.receiveOne(t)
				if !bytes.Equal(queues.Decode(m.Text), body) || e.store.Delete(t.Context(), e.queue, m.ID, m.PopReceipt) != nil {
					t.Errorf("%s: %d bytes came back", what, len(m.Text))
				}
			}
		}
	}
}

// texter is a store that accepts texts of other senders, as both stores do.
type texter interface {
	SendText(ctx context.Context, queue, text string, delay time.Duration) (string, error)
}

func testTextSweep(t *testing.T, e env) {
	s, ok := e.store.(texter)
	if !ok {
		t.Skip("the store takes no texts")
	}
	for n := queues.MaxText - 1; n <= queues.MaxText+1; n++ {
		text := strings.Repeat("<", n)
		_, err := s.SendText(t.Context(), e.queue, text, 0)
		if n > queues.MaxText {
			wantRefused(t, "a longer text", err, queues.ErrTooLarge)
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if m := e.receiveOne(t); m.Text != text {
			t.Errorf("%d bytes came back as %d", n, len(m.Text))
		}
	}
}

func testReceiveSweep(t *testing.T, e env) {
	for range queues.MaxReceive + 1 {
		e.send(t, "x", 0)
	}
	for n := queues.MaxReceive - 1; n <= queues.MaxReceive+1; n++ {
		messages, err := e.store.Receive(t.Context(), e.queue, n, time.Second)
		if n > queues.MaxReceive {
			wantRefused(t, "a larger batch", err, queues.ErrInvalid)
			continue
		}
		if err != nil || len(messages) != n {
			t.Errorf("%d of %d messages, %v", len(messages), n, err)
		}
		for _, m := range messages {
			if _, err := e.store.Renew(t.Context(), e.queue, m.ID, m.PopReceipt, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := e.receiveOne(t)
	for _, d := range []time.Duration{queues.MaxDelay - time.Second, queues.MaxDelay, queues.MaxDelay + time.Second} {
		receipt, err := e.store.Renew(t.Context(), e.queue, m.ID, m.PopReceipt, d)
		if d > queues.MaxDelay {
			wantRefused(t, "a longer visibility", err, queues.ErrInvalid)
			continue
		}
		if err != nil {
			t.Fatalf("%v: %v", d, err)
		}
		m.PopReceipt = receipt
	}
	for n := 62; n <= 64; n++ {
		name := e.queue + strings.Repeat("x", n-len(e.queue))
		if err := e.store.CreateQueue(t.Context(), name); n > 63 {
			wantRefused(t, "a longer name", err, queues.ErrInvalid)
		} else if err != nil {
			t.Errorf("a name of %d: %v", n, err)
		}
	}
}

// wantRefused checks that the error names a limit.
func wantRefused(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), "at most") && !strings.Contains(err.Error(), "use ") {
		t.Errorf("%s: got error %.200v, want %v with the limit", what, err, want)
	}
}

// The texts that another sender may put.
func testSendText(t *testing.T, e env) {
	s, ok := e.store.(texter)
	if !ok {
		t.Skip("the store takes no texts")
	}
	for _, text := range []string{`{"a":"<b>&amp;"}`, "é 日本 𝄞", "x", strings.Repeat("a", queues.MaxText)} {
		if _, err := s.SendText(t.Context(), e.queue, text, 0); err != nil {
			t.Fatalf("%.40q: %v", text, err)
		}
		if m := e.receiveOne(t); m.Text != text {
			t.Errorf("sent %.40q, received %.200q", text, m.Text)
		}
	}
	for text, want := range map[string]error{"": queues.ErrInvalid, "\x00": queues.ErrInvalid, "\xff": queues.ErrInvalid, strings.Repeat("a", queues.MaxText+1): queues.ErrTooLarge} {
		_, err := s.SendText(t.Context(), e.queue, text, 0)
		wantError(t, fmt.Sprintf("text %.20q", text), err, want)
	}
}
