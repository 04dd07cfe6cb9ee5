// Package queuestest tests the promises of a queues.Store and the limits of the service: one suite for every
// implementation.
package queuestest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// Run runs the suite. open returns a store; it may be the same one each time, since every test makes its own queue.
func Run(t *testing.T, open func(t *testing.T) queues.Store) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, env)
	}{
		{"CreateQueue", testCreateQueue},
		{"MissingQueue", testMissingQueue},
		{"SendAndReceive", testSendAndReceive},
		{"Bodies", testBodies},
		{"BodySize", testBodySize},
		{"Sweep", testSweep},
		{"TextSweep", testTextSweep},
		{"SendText", testSendText},
		{"ReceiveSweep", testReceiveSweep},
		{"Delay", testDelay},
		{"Receive", testReceive},
		{"Visibility", testVisibility},
		{"Peek", testPeek},
		{"Renew", testRenew},
		{"SendHidden", testSendHidden},
		{"Update", testUpdate},
		{"Delete", testDelete},
		{"BadReceipts", testBadReceipts},
		{"Cancelled", testCancelled},
		{"RaceForMessages", testRaceForMessages},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := env{store: open(t), queue: "q-" + strings.ToLower(rand.Text())}
			if err := e.store.CreateQueue(t.Context(), e.queue); err != nil {
				t.Fatal(err)
			}
			test.run(t, e)
		})
	}
}

// env is a store with a queue of this test.
type env struct {
	store queues.Store
	queue string
}

func (e env) send(t *testing.T, body string, delay time.Duration) string {
	t.Helper()
	id, err := e.store.Send(t.Context(), e.queue, []byte(body), delay)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (e env) receive(t *testing.T, limit int, visibility time.Duration) []queues.Message {
	t.Helper()
	messages, err := e.store.Receive(t.Context(), e.queue, limit, visibility)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func (e env) receiveOne(t *testing.T) queues.Message {
	t.Helper()
	messages := e.receive(t, 1, time.Minute)
	if len(messages) != 1 {
		t.Fatalf("received %d messages, want 1", len(messages))
	}
	return messages[0]
}

func (e env) length(t *testing.T) int {
	t.Helper()
	n, err := e.store.Length(t.Context(), e.queue)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// wantLost checks the error of a receipt that is no longer valid: the service may return either error.
func wantLost(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, queues.ErrPopReceipt) && !errors.Is(err, queues.ErrNotFound) {
		t.Errorf("%s: got error %v, want %v or %v", what, err, queues.ErrPopReceipt, queues.ErrNotFound)
	}
}

func testCreateQueue(t *testing.T, e env) {
	if err := e.store.CreateQueue(t.Context(), e.queue); err != nil {
		t.Errorf("create a queue that exists: %v", err)
	}
	for _, name := range []string{"", "ab", "Upper", "under_line", "-a-b", "a-b-", "a--b", "a/b", "ünicode", strings.Repeat("a", 64)} {
		wantError(t, "create "+name, e.store.CreateQueue(t.Context(), name), queues.ErrInvalid)
	}
}

func testMissingQueue(t *testing.T, e env) {
	const missing = "missing-queue"
	_, sendErr := e.store.Send(t.Context(), missing, []byte("x"), 0)
	_, receiveErr := e.store.Receive(t.Context(), missing, 1, time.Minute)
	_, renewErr := e.store.Renew(t.Context(), missing, "00000000-0000-0000-0000-000000000000", "AgAAAAMAAAAAAAAA", time.Minute)
	_, lengthErr := e.store.Length(t.Context(), missing)
	_, _, peekErr := e.store.Peek(t.Context(), missing)
	for name, err := range map[string]error{
		"peek": peekErr,
		"send": sendErr, "receive": receiveErr, "renew": renewErr, "length": lengthErr,
		"delete": e.store.Delete(t.Context(), missing, "00000000-0000-0000-0000-000000000000", "AgAAAAMAAAAAAAAA"),
	} {
		wantError(t, name, err, queues.ErrNotFound)
	}
}

func testSendAndReceive(t *testing.T, e env) {
	before := time.Now().Add(-2 * time.Minute) // the service has its own clock
	id := e.send(t, "hello", 0)
	m := e.receiveOne(t)
	if m.ID != id || m.Text != "aGVsbG8=" || m.DequeueCount != 1 || m.PopReceipt == "" {
		t.Errorf("received %+v, want id %s, the text in base64, count 1 and a receipt", m, id)
	}
	if m.InsertedAt.Before(before) || m.InsertedAt.Location() != time.UTC {
		t.Errorf("inserted at %v, want now in UTC", m.InsertedAt)
	}
	if m.ExpiresAt.Year() != 9999 {
		t.Errorf("expires at %v, want never", m.ExpiresAt)
	}
	if d := m.NextVisibleAt.Sub(m.InsertedAt); d < 50*time.Second {
		t.Errorf("visible again after %v, want about a minute", d)
	}
	if again := e.receive(t, 32, time.Minute); len(again) != 0 {
		t.Errorf("received %d hidden messages", len(again))
	}
	if n := e.length(t); n != 1 {
		t.Errorf("length %d with a hidden message, want 1", n)
	}
	if err := e.store.Delete(t.Context(), e.queue, m.ID, m.PopReceipt); err != nil {
		t.Error(err)
	}
	if n := e.length(t); n != 0 {
		t.Errorf("length %d, want 0", n)
	}
}

func testBodies(t *testing.T, e env) {
	for _, body := range []string{`{"a":"<é𝄞>&\"\u0000"}`, "\x00\x01", " ", "日本", "]]>", "\r\n"} {
		e.send(t, body, 0)
		m := e.receiveOne(t)
		if got := queues.Decode(m.Text); string(got) != body {
			t.Errorf("sent %q, received %q", body, got)
		}
		if err := e.store.Delete(t.Context(), e.queue, m.ID, m.PopReceipt); err != nil {
			t.Fatal(err)
		}
	}
}

func testBodySize(t *testing.T, e env) {
	largest := bytes.Repeat([]byte("x"), queues.MaxBody)
	if _, err := e.store.Send(t.Context(), e.queue, largest, 0); err != nil {
		t.Fatalf("send the largest body: %v", err)
	}
	if got := queues.Decode(e.receiveOne(t).Text); !bytes.Equal(got, largest) {
		t.Errorf("the largest body came back with %d bytes", len(got))
	}
	_, err := e.store.Send(t.Context(), e.queue, append(largest, 'x'), 0)
	wantError(t, "one byte more", err, queues.ErrTooLarge)
	_, err = e.store.Send(t.Context(), e.queue, nil, 0)
	wantError(t, "nothing", err, queues.ErrInvalid)
}

func testDelay(t *testing.T, e env) {
	e.send(t, "later", queues.MaxDelay)
	e.send(t, "soon", time.Hour)
	if n := e.length(t); n != 2 {
		t.Errorf("length %d with two delayed messages", n)
	}
	e.send(t, "now", 0)
	messages := e.receive(t, 32, queues.MaxDelay)
	if len(messages) != 1 || string(queues.Decode(messages[0].Text)) != "now" {
		t.Errorf("received %d messages, want the one without delay", len(messages))
	}
	for _, delay := range []time.Duration{-1, -time.Second, queues.MaxDelay + 1, queues.MaxDelay + time.Second} {
		_, err := e.store.Send(t.Context(), e.queue, []byte("x"), delay)
		wantError(t, "delay "+delay.String(), err, queues.ErrInvalid)
	}
}

func testReceive(t *testing.T, e env) {
	if got := e.receive(t, 32, time.Minute); len(got) != 0 {
		t.Errorf("received %d messages of an empty queue", len(got))
	}
	for i := range 35 {
		e.send(t, strconv.Itoa(i), 0)
	}
	seen := map[string]bool{}
	for _, limit := range []int{1, 32, 32} {
		messages := e.receive(t, limit, time.Minute)
		if len(messages) > limit {
			t.Errorf("received %d messages, limit %d", len(messages), limit)
		}
		for _, m := range messages {
			if seen[m.ID] {
				t.Errorf("message %s came twice", m.ID)
			}
			seen[m.ID] = true
		}
	}
	if len(seen) != 35 {
		t.Errorf("received %d messages of 35", len(seen))
	}
	for _, bad := range []struct {
		limit      int
		visibility time.Duration
	}{{0, time.Minute}, {33, time.Minute}, {-1, time.Minute}, {1, 0}, {1, -time.Second}, {1, queues.MaxDelay + 1}} {
		_, err := e.store.Receive(t.Context(), e.queue, bad.limit, bad.visibility)
		wantError(t, "receive "+strconv.Itoa(bad.limit)+" for "+bad.visibility.String(), err, queues.ErrInvalid)
	}
}

// A message is redelivered when its visibility ends; here Renew ends it immediately.
func testVisibility(t *testing.T, e env) {
	id := e.send(t, "again", 0)
	for count := int64(1); count <= 3; count++ {
		m := e.receiveOne(t)
		if m.ID != id || m.DequeueCount != count {
			t.Errorf("received %s with count %d, want %s with %d", m.ID, m.DequeueCount, id, count)
		}
		if _, err := e.store.Renew(t.Context(), e.queue, m.ID, m.PopReceipt, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// Peek returns the visible message and changes nothing.
func testPeek(t *testing.T, e env) {
	peek := func() (queues.Message, bool) {
		t.Helper()
		m, found, err := e.store.Peek(t.Context(), e.queue)
		if err != nil {
			t.Fatal(err)
		}
		return m, found
	}
	e.send(t, "later", time.Hour)
	if m, found := peek(); found {
		t.Errorf("peeked at %s, which is not visible", m.ID)
	}
	id := e.send(t, "now", 0)
	for range 2 {
		m, found := peek()
		if !found || m.ID != id || m.PopReceipt != "" || m.DequeueCount != 0 || m.InsertedAt.IsZero() || string(queues.Decode(m.Text)) != "now" {
			t.Errorf("peeked at %+v, %v; want %s as it was sent", m, found, id)
		}
	}
	received := e.receiveOne(t)
	if m, found := peek(); received.ID != id || received.DequeueCount != 1 || found {
		t.Errorf("received %s with count %d, and then peeked at %s, %v", received.ID, received.DequeueCount, m.ID, found)
	}
	if _, err := e.store.Renew(t.Context(), e.queue, id, received.PopReceipt, 0); err != nil {
		t.Fatal(err)
	}
	if m, found := peek(); !found || m.ID != id || m.DequeueCount != 1 {
		t.Errorf("peeked at %+v, %v after it came back", m, found)
	}
}

func testRenew(t *testing.T, e env) {
	e.send(t, "renewed", 0)
	first := e.receiveOne(t)
	receipt, err := e.store.Renew(t.Context(), e.queue, first.ID, first.PopReceipt, queues.MaxDelay)
	if err != nil {
		t.Fatal(err)
	}
	if receipt == "" || receipt == first.PopReceipt {
		t.Errorf("the renewed receipt is %q, the first was %q", receipt, first.PopReceipt)
	}
	_, err = e.store.Renew(t.Context(), e.queue, first.ID, first.PopReceipt, time.Minute)
	wantLost(t, "renew with the first receipt", err)
	wantLost(t, "delete with the first receipt", e.store.Delete(t.Context(), e.queue, first.ID, first.PopReceipt))
	if _, err := e.store.Renew(t.Context(), e.queue, first.ID, receipt, 0); err != nil {
		t.Fatal(err)
	}
	second := e.receiveOne(t)
	if got := queues.Decode(second.Text); string(got) != "renewed" || second.DequeueCount != 2 {
		t.Errorf("after Renew the message is %q with count %d, want its text as sent and 2", got, second.DequeueCount)
	}
	for _, visibility := range []time.Duration{-1, queues.MaxDelay + 1} {
		_, err := e.store.Renew(t.Context(), e.queue, second.ID, second.PopReceipt, visibility)
		wantError(t, "renew for "+visibility.String(), err, queues.ErrInvalid)
	}
	if err := e.store.Delete(t.Context(), e.queue, second.ID, second.PopReceipt); err != nil {
		t.Errorf("delete after refused renewals: %v", err)
	}
}

// The sender of a hidden message has the rights of its receiver.
func testSendHidden(t *testing.T, e env) {
	sent, err := e.store.SendHidden(t.Context(), e.queue, []byte("hidden"), queues.MaxDelay)
	if err != nil {
		t.Fatal(err)
	}
	id, receipt := sent.ID, sent.PopReceipt
	if got, err := e.store.Receive(t.Context(), e.queue, 1, time.Minute); err != nil || len(got) != 0 {
		t.Errorf("hidden, and received: %v, %v", got, err)
	}
	if receipt, err = e.store.Renew(t.Context(), e.queue, id, receipt, 0); err != nil {
		t.Fatal(err)
	}
	shown := e.receiveOne(t)
	if got := queues.Decode(shown.Text); string(got) != "hidden" || shown.ID != id || shown.DequeueCount != 1 || !shown.InsertedAt.Equal(sent.InsertedAt) {
		t.Errorf("%q of message %s, received for the %d. time, inserted at %v: sent %+v", got, shown.ID, shown.DequeueCount, shown.InsertedAt, sent)
	}
	wantLost(t, "delete with the sender's receipt", e.store.Delete(t.Context(), e.queue, id, receipt))
	if sent, err = e.store.SendHidden(t.Context(), e.queue, []byte("deleted"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := e.store.Delete(t.Context(), e.queue, sent.ID, sent.PopReceipt); err != nil {
		t.Errorf("delete by the sender: %v", err)
	}
	for _, hidden := range []time.Duration{-1, 0, queues.MaxDelay + 1} {
		_, err := e.store.SendHidden(t.Context(), e.queue, []byte("x"), hidden)
		wantError(t, "hidden for "+hidden.String(), err, queues.ErrInvalid)
	}
}

func testUpdate(t *testing.T, e env) {
	e.send(t, "as sent", 0)
	first := e.receiveOne(t)
	receipt, err := e.store.Update(t.Context(), e.queue, first.ID, first.PopReceipt, []byte("changed"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.store.Update(t.Context(), e.queue, first.ID, first.PopReceipt, []byte("late"), 0)
	wantLost(t, "update with the first receipt", err)
	if _, err := e.store.Renew(t.Context(), e.queue, first.ID, receipt, 0); err != nil {
		t.Fatal(err)
	}
	second := e.receiveOne(t)
	if got := queues.Decode(second.Text); string(got) != "changed" {
		t.Errorf("after Update the message is %q", got)
	}
	_, err = e.store.Update(t.Context(), e.queue, second.ID, second.PopReceipt, nil, 0)
	wantError(t, "update with an empty body", err, queues.ErrInvalid)
	_, err = e.store.Update(t.Context(), e.queue, second.ID, second.PopReceipt, make([]byte, queues.MaxBody+1), 0)
	wantError(t, "update with a body that is too large", err, queues.ErrTooLarge)
}

func testDelete(t *testing.T, e env) {
	e.send(t, "x", 0)
	first := e.receiveOne(t)
	if _, err := e.store.Renew(t.Context(), e.queue, first.ID, first.PopReceipt, 0); err != nil {
		t.Fatal(err)
	}
	second := e.receiveOne(t)
	wantLost(t, "delete after another receive", e.store.Delete(t.Context(), e.queue, first.ID, first.PopReceipt))
	if err := e.store.Delete(t.Context(), e.queue, second.ID, second.PopReceipt); err != nil {
		t.Fatal(err)
	}
	wantLost(t, "delete twice", e.store.Delete(t.Context(), e.queue, second.ID, second.PopReceipt))
	_, err := e.store.Renew(t.Context(), e.queue, second.ID, second.PopReceipt, time.Minute)
	wantLost(t, "renew a deleted message", err)
}

func testBadReceipts(t *testing.T, e env) {
	e.send(t, "x", 0)
	m := e.receiveOne(t)
	for _, bad := range [][2]string{{"", m.PopReceipt}, {m.ID, ""}, {strings.Repeat("a", 257), m.PopReceipt}, {m.ID, strings.Repeat("a", 1025)}} {
		wantError(t, "delete", e.store.Delete(t.Context(), e.queue, bad[0], bad[1]), queues.ErrInvalid)
		_, err := e.store.Renew(t.Context(), e.queue, bad[0], bad[1], time.Minute)
		wantError(t, "renew", err, queues.ErrInvalid)
	}
	// An id is data and must not address another resource.
	for _, id := range []string{"../" + m.ID, m.ID + "?comp=acl", "a/b", "%2e%2e", "."} {
		wantError(t, "delete "+id, e.store.Delete(t.Context(), e.queue, id, m.PopReceipt), queues.ErrInvalid)
		_, err := e.store.Renew(t.Context(), e.queue, id, m.PopReceipt, time.Minute)
		wantError(t, "renew "+id, err, queues.ErrInvalid)
	}
	if n := e.length(t); n != 1 {
		t.Errorf("length %d, want 1", n)
	}
}

func testCancelled(t *testing.T, e env) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, sendErr := e.store.Send(ctx, e.queue, []byte("x"), 0)
	_, receiveErr := e.store.Receive(ctx, e.queue, 1, time.Minute)
	_, renewErr := e.store.Renew(ctx, e.queue, "id", "receipt", time.Minute)
	_, lengthErr := e.store.Length(ctx, e.queue)
	_, _, peekErr := e.store.Peek(ctx, e.queue)
	for name, err := range map[string]error{
		"peek":   peekErr,
		"create": e.store.CreateQueue(ctx, e.queue),
		"send":   sendErr, "receive": receiveErr, "renew": renewErr, "length": lengthErr,
		"delete": e.store.Delete(ctx, e.queue, "id", "receipt"),
	} {
		wantError(t, name, err, context.Canceled)
	}
	if n := e.length(t); n != 0 {
		t.Errorf("length %d after a cancelled send", n)
	}
}

func testRaceForMessages(t *testing.T, e env) {
	const count = 40
	for i := range count {
		e.send(t, strconv.Itoa(i), 0)
	}
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				messages, err := e.store.Receive(t.Context(), e.queue, 3, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if len(messages) == 0 {
					return
				}
				for _, m := range messages {
					if err := e.store.Delete(t.Context(), e.queue, m.ID, m.PopReceipt); err != nil {
						t.Error(err)
					}
					mu.Lock()
					got = append(got, string(queues.Decode(m.Text)))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); len(got) != count || n != count {
		t.Errorf("received %d messages, %d different ones, of %d", len(got), n, count)
	}
}
