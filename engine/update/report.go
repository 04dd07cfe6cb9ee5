package update

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
)

// maxReason bounds the reason of a failure in the report, in bytes.
const maxReason = 512

// report publishes the outcome of an attempt at an update. A cancellation does not prevent it. A failed attempt is
// reported, too, though another may follow: the publisher needs to know of an update that does not get through.
func report(ctx *orchestrator.Context, r engine.Request[Input], result Result, has string, cause error) error {
	f := release.Finished{InstanceID: r.InstanceID, Status: result.Status, Ring: r.Input.Ring, Wanted: r.Input.Version, Version: has,
		CorrelationID: r.CorrelationID, FinishedAtUtc: ctx.Now().UTC()}
	switch {
	case cause != nil:
		f.Status, f.Reason = release.Failed, brief(cause)
		if errors.Is(cause, errRolledBack) {
			f.Status = release.RolledBack
		}
	case result.SupersededBy != nil:
		f.SupersededBy = result.SupersededBy.Version
	case result.Status == release.Updated:
		f.Version = cmp.Or(r.Input.Version, has)
	}
	payload, err := json.Marshal(f)
	if err != nil {
		return orchestrator.Permanent(fmt.Errorf("report the update of instance %s: %w", r.InstanceID, err))
	}
	// A run ends once in each of its executions; those of a singleton are counted across runs.
	key := engine.DeriveCorrelationID(release.EventFinished, r.InstanceID, r.CorrelationID, fmt.Sprint(ctx.Execution()), f.FinishedAtUtc.String())
	return orchestrator.WithoutCancel(ctx).Publish(orchestrator.Publication{
		TenantID: cmp.Or(r.TenantID, engine.PublisherInstance), Type: release.EventFinished, Payload: payload, Key: key, OrderKey: engine.OrderKey(r.InstanceID), Report: true})
}

// brief returns a redacted and shortened error.
func brief(err error) string {
	text := engine.Redact(err.Error())
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
