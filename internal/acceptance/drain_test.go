package acceptance

import (
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// An app is drained during work, its handler is killed after it reports that nothing runs, and the app works again
// afterwards. Every message is processed once, without a failed attempt, and none waits for the host's lease of ten
// minutes.
func TestDrainAndKill(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	p := startWith(t, setup{account: ownStorage(t)})
	roundhouse := p.commandLine(t)
	var ids []string
	send := func(n int) {
		for range n {
			id := uuid.NewString()
			ids = append(ids, id)
			p.send(t, hmac.Queue, rotation(id, "instance-"+id))
		}
	}
	send(60)
	rotated := func(i localhost.Invocation) bool { return i.Function == "hmac-queue-trigger" }
	testenv.Until(t, "work", func() bool { return p.seen(rotated) > 5 })
	drained := make(chan string, 1)
	go func() {
		out, errs := roundhouse.run(t, 0, "drain", "--yes")
		drained <- out + errs
	}()
	send(30)
	if said := <-drained; len(said) == 0 {
		t.Error("drain says nothing")
	}
	pid := p.host.HandlerPID()
	testenv.OK(t, p.host.KillHandler())
	testenv.Until(t, "another handler", func() bool { now := p.host.HandlerPID(); return now != 0 && now != pid })
	send(10)
	roundhouse.run(t, 0, "drain", "--end")
	testenv.Until(t, "the messages that were put back, for a minute", func() bool { return p.empty(t, hmac.Queue) })
	for _, id := range ids {
		p.succeeded(t, id, "instance-"+id)
	}
	if letters := p.list(t, "/api/dlq", url.Values{"engine": {hmac.Engine}}); len(letters) > 0 {
		t.Errorf("dead letters: %v", letters)
	}
	if failed := p.list(t, "/api/history", url.Values{"engine": {hmac.Engine}, "status": {"Failed"}}); len(failed) > 0 {
		t.Errorf("failed attempts: %v", failed)
	}
	if n := p.seen(func(i localhost.Invocation) bool { return rotated(i) && i.Err != nil }); n > 0 {
		t.Errorf("%d deliveries failed", n)
	}
}
