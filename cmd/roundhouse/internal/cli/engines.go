package cli

import (
	"maps"
	"slices"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/outbox"
)

const (
	// outboxEngine is the name under which dead events are in the dead letters, operatorEngine that under which the history
	// has what operators change in storage.
	outboxEngine   = "outbox"
	operatorEngine = "operator"
)

// work are the queues of the engines of both deployment contexts.
func work() map[string]string {
	return map[string]string{
		alerts.Engine: alerts.Queue, health.Engine: health.Queue, hmac.Engine: hmac.Queue, provisioning.Engine: provisioning.Queue,
		spn.Engine: spn.Queue, tls.Engine: tls.Queue, update.Engine: update.Queue, updatepublisher.Engine: updatepublisher.Queue,
	}
}

func workNames() []string { return slices.Sorted(maps.Keys(work())) }

func queueOf(engine string) string { return work()[engine] }

// engineNames are the names under which there can be history and dead letters.
func engineNames() []string {
	return append(workNames(), engine.SignalEngine, outboxEngine, operatorEngine)
}

// queueNames are the queues of the program, without their poison queues.
func queueNames() []string {
	return append(slices.Sorted(maps.Values(work())), "orchestration-signals", "orchestration-schedules", "orchestration-activities", outbox.DefaultQueue)
}
