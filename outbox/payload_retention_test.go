package outbox

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// blobCount counts the blobs of a container.
func (w *world) blobCount(t *testing.T, container string) (n int) {
	t.Helper()
	for _, err := range blobs.All(t.Context(), w.blobs, container, "") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// After a death in an Add, a payload exists exactly if a message exists, and adding it again works.
func TestPayloadsThatNobodyNames(t *testing.T) {
	t.Parallel()
	left := 0
	for at := 1; ; at++ {
		w := newWorld(t)
		p, m := w.process(t, nil), message1(1)
		m.Payload = text(spillPayload + 1)
		_, err := w.process(t, &faults.Plan{At: at, Fault: faults.CrashBefore}).writer.Add(t.Context(), m)
		page, listErr := p.admin.List(t.Context(), Filter{TenantID: "acme"})
		if listErr != nil {
			t.Fatal(listErr)
		}
		before := w.blobCount(t, w.container)
		if n, _, err := p.admin.SweepPayloads(t.Context(), time.Now().Add(-time.Hour), ""); n != 0 || err != nil {
			t.Errorf("%d young payloads went, %v", n, err)
		}
		removed, next, sweepErr := p.admin.SweepPayloads(t.Context(), time.Now().Add(time.Hour), "")
		if sweepErr != nil || next != "" || w.blobCount(t, w.container) != len(page.Records) || removed != before-len(page.Records) {
			t.Errorf("call %d: %d of %d payloads went for %d messages, %v", at, removed, before, len(page.Records), sweepErr)
		}
		left += removed
		p.add(t, m)
		if r := p.get(t, "acme", key(1).String()); len(r.Payload) != len(m.Payload) {
			t.Errorf("call %d: a payload of %d bytes", at, len(r.Payload))
		}
		if err == nil {
			break
		}
	}
	if left == 0 {
		t.Error("no death left a payload behind")
	}
}

// Blobs that are not payloads of a known tenant stay.
func TestPayloadsThatAreLeftAlone(t *testing.T) {
	w, p := start(t)
	p.add(t, message1(1))
	for _, name := range []string{"a", "a/b", digest("acme") + "/b", digest("nobody") + "/" + key(1).String() + "/0", digest("acme") + "/1/2/3"} {
		testenv.OK(t, w.blobs.Put(t.Context(), w.container, name, nil))
	}
	if n, _, err := p.admin.SweepPayloads(t.Context(), time.Now().Add(time.Hour), ""); n != 0 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
}

// A payload that was sent by a queue stays while a message in a queue could name it.
func TestDataOfQueues(t *testing.T) {
	t.Parallel()
	k := newQueueKit(t)
	w := newWorld(t)
	w.blobs = k.blobs
	admin, later := w.process(t, nil).admin, time.Now().Add(time.Hour)
	sweep := func(before time.Time, want int) {
		t.Helper()
		if n, next, err := admin.SweepData(t.Context(), []*Queue{k.Queue}, before, ""); n != want || next != "" || err != nil {
			t.Errorf("%d payloads went, want %d: %v", n, want, err)
		}
	}
	testenv.OK(t, k.Deliver(t.Context(), sized(t, queues.MaxBody+1)))
	testenv.OK(t, k.blobs.Put(t.Context(), DataContainer, "of/somebody else", nil))
	sweep(later, 0) // its message is there
	k.receive(t)
	sweep(later, 0) // and hidden
	messages, err := k.queues.Receive(t.Context(), "events", 1, time.Minute)
	if err != nil || len(messages) != 0 {
		t.Fatal(messages, err)
	}
	poison := "events" + poisonSuffix
	testenv.OK(t, k.queues.CreateQueue(t.Context(), poison))
	testenv.Must(k.queues.Send(t.Context(), poison, []byte("{}"), 0))(t)
	k.empty(t, "events")
	sweep(later, 0) // its message was abandoned
	k.empty(t, poison)
	sweep(time.Now().Add(-time.Hour), 0) // it is young
	sweep(later, 1)
	sweep(later, 0)
	if n := w.blobCount(t, DataContainer); n != 1 {
		t.Errorf("%d blobs are left", n)
	}
}

// empty removes all messages from a queue, hidden ones included.
func (k queueKit) empty(t *testing.T, queue string) {
	t.Helper()
	k.queues.Now = func() time.Time { return time.Now().Add(time.Hour) }
	messages, err := k.queues.Receive(t.Context(), queue, 32, time.Minute)
	for _, m := range messages {
		if err == nil {
			err = k.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
		}
	}
	if err != nil || len(messages) == 0 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	k.queues.Now = nil
}
