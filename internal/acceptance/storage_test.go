package acceptance

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// ownStorage returns an Azurite that no other test uses, for tests that read all of storage.
func ownStorage(t *testing.T) azure.Account {
	t.Helper()
	server, err := azurite.Start(t.Context(), azurite.Config{DataDir: t.TempDir(), BlobPort: testenv.Port(t), QueuePort: testenv.Port(t), TablePort: testenv.Port(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.Account()
}

// passingStorage returns an Azurite that can be stopped, and restarted with its data.
func passingStorage(t *testing.T) (account azure.Account, begin, end func()) {
	t.Helper()
	config := azurite.Config{DataDir: t.TempDir(), BlobPort: testenv.Port(t), QueuePort: testenv.Port(t), TablePort: testenv.Port(t)}
	var server *azurite.Server
	begin = func() {
		t.Helper()
		server = testenv.Must(azurite.Start(testenv.Context(t), config))(t)
	}
	end = func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	begin()
	t.Cleanup(func() { end() })
	return server.Account(), begin, end
}

// TestStorageGoesAndComes stops Azurite during rotations, and restarts it with its data. The host and the handler keep
// running, and every rotation leaves the traces of exactly one run.
func TestStorageGoesAndComes(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	account, begin, end := passingStorage(t)
	// A message whose receive answer was lost is redelivered when the host's lease ends.
	p := startWith(t, setup{account: account, visibility: 10 * time.Second})
	pid := p.host.HandlerPID()
	var ids []string
	for range 12 {
		ids = append(ids, uuid.NewString())
		p.send(t, hmac.Queue, rotation(ids[len(ids)-1], "instance-"+ids[len(ids)-1]))
	}
	testenv.Until(t, "the first rotation", func() bool {
		return p.seen(func(i localhost.Invocation) bool { return i.Err == nil && i.Function == "hmac-queue-trigger" }) > 0
	})
	end()
	stopped := time.Now()
	begin()
	back := time.Now()
	for _, id := range ids {
		p.succeeded(t, id, "instance-"+id)
	}
	t.Logf("%d rotations have succeeded %.1f s after storage was back, which was away for %.1f s", len(ids), time.Since(back).Seconds(), back.Sub(stopped).Seconds())
	if now := p.host.HandlerPID(); now != pid {
		t.Error("the handler was started again")
	}
}

// receiver records the messages of a queue that the host has received: those whose invocations start.
type receiver struct {
	*azure.Queues
	queue string

	mu       sync.Mutex
	received map[string]bool
}

func (r *receiver) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	got, err := r.Queues.Receive(ctx, queue, limit, visibility)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range got {
		if queue == r.queue {
			r.received[m.ID] = true
		}
	}
	return got, err
}

func (r *receiver) begun() int { return len(r.messages()) }

func (r *receiver) messages() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.received))
}

// TestInvocationsWaitForStorage stops Azurite for 12 s while the host has many messages in flight, under the lease of
// the real host, which is ten minutes: every running invocation waits, and succeeds. None is redelivered.
func TestInvocationsWaitForStorage(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	account, begin, end := passingStorage(t)
	r := &receiver{queue: hmac.Queue, received: map[string]bool{}}
	p := startWith(t, setup{account: account, hostQueues: func(q *azure.Queues) queues.Store { r.Queues = q; return r }})
	pid := p.host.HandlerPID()
	ids := map[string]string{} // correlation ids by message id
	for range 60 {
		id := uuid.NewString()
		ids[p.send(t, hmac.Queue, rotation(id, "instance-"+id))] = id
	}
	ofRotation := func(i localhost.Invocation) bool { return i.Function == "hmac-queue-trigger" }
	testenv.Until(t, "some rotations, and others under way", func() bool { return p.seen(ofRotation) >= 5 && r.begun() > p.seen(ofRotation)+5 })
	end()
	stopped := time.Now()
	running := r.begun() - p.seen(ofRotation)
	testenv.Until(t, "12 s without storage", func() bool { return time.Since(stopped) > 12*time.Second })
	begin()
	back := time.Now()
	testenv.Until(t, "what had begun", func() bool { return p.seen(ofRotation) >= r.begun() })
	t.Logf("%d messages were in hand when storage went; all of %d that had begun have ended %.1f s after it was back, which was away for %.1f s",
		running, r.begun(), time.Since(back).Seconds(), back.Sub(stopped).Seconds())
	if n := p.seen(func(i localhost.Invocation) bool { return ofRotation(i) && (i.Err != nil || i.DequeueCount != 1) }); n != 0 {
		t.Errorf("%d invocations failed, or were of messages that came again", n)
	}
	// A message whose receive answer was lost with storage is hidden for the lease, so the queue need not be empty.
	for _, message := range r.messages() {
		hmacs, id := at(hmac.Engine, hmac.Queue), ids[message]
		entries := p.recorded(t, hmacs, id)
		p.checkRun(t, hmacs, id, entries, rotated("instance-"+id))
		p.checkRotated(t, "instance-"+id, entries)
	}
	if now := p.host.HandlerPID(); now != pid {
		t.Error("the handler was started again")
	}
}
