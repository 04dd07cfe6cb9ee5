package acceptance

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// ownStorage is an Azurite that no other test uses, for what looks at everything that is in storage.
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

// TestStorageGoesAndComes stops Azurite while rotations are under way, and starts it again with its data. The host and the
// handler are those that were there before, and every rotation leaves what one run leaves.
func TestStorageGoesAndComes(t *testing.T) {
	config := azurite.Config{DataDir: t.TempDir(), BlobPort: testenv.Port(t), QueuePort: testenv.Port(t), TablePort: testenv.Port(t)}
	var server *azurite.Server
	begin := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var err error
		if server, err = azurite.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
	}
	end := func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	begin()
	t.Cleanup(func() { end() })
	// What the host cannot release while storage is away comes again when its lease ends.
	p := startWith(t, setup{account: server.Account(), visibility: 10 * time.Second})
	pid := p.host.HandlerPID()
	var ids []string
	for range 12 {
		ids = append(ids, uuid.NewString())
		p.send(t, hmac.Queue, rotation(ids[len(ids)-1], "instance-"+ids[len(ids)-1]))
	}
	until(t, "the first rotation", func() bool {
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
