package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
)

// method is one HTTP method of a resource: its permission, and its endpoint.
type method struct {
	need access.Permission
	run  endpoint
}

// resource is a path and its methods. Segments of the path that begin with a colon are parameters.
type resource struct {
	path    string
	part    part
	methods map[string]method
}

// maxBody bounds the bytes read of a request's body.
func (r resource) maxBody() int64 {
	if r.path == openHistoryPath {
		return MaxHistory
	}
	return maxBody
}

// resources returns all possible resources; part names their part of a Config.
func (a *api) resources() []resource {
	type methods = map[string]method
	get := func(need access.Permission, run endpoint) methods { return methods{http.MethodGet: {need, run}} }
	post := func(need access.Permission, run endpoint) methods { return methods{http.MethodPost: {need, run}} }
	return append(a.pollerResources(), []resource{
		{"/api/me", engines, get(access.Self, a.me)},
		{"/api/engines", engines, get(access.PlatformRead, a.listEngines)},
		{"/api/history", engines, get(access.HistoryRead, a.listHistory)},
		{"/api/history/:engine/:rowKey", engines, get(access.HistoryRead, a.getHistory)},
		{"/api/dlq", engines, get(access.DeadLettersRead, a.listDeadLetters)},
		{"/api/dlq/groups", engines, get(access.DeadLettersRead, a.groupDeadLetters)},
		{"/api/dlq/counts", engines, get(access.DeadLettersRead, a.countDeadLetters)},
		{"/api/dlq/retry", retries, post(access.DeadLettersBulk, a.retryMany)},
		{"/api/dlq/expire", retries, post(access.DeadLettersBulk, a.expireMany)},
		{"/api/dlq/:engine/:rowKey", engines, methods{http.MethodGet: {access.DeadLettersRead, a.getDeadLetter}, http.MethodPatch: {access.DeadLettersDecide, a.patchDeadLetter}}},
		{"/api/dlq/:engine/:rowKey/retry", retries, post(access.DeadLettersDecide, a.retryDeadLetter)},
		{"/api/dlq/:engine/:rowKey/retry-edited", retries, post(access.DeadLettersEdit, a.retryEdited)},
		{"/api/dlq/:engine/:rowKey/notes", engines, post(access.DeadLettersDecide, a.noteDeadLetter)},
		{"/api/dlq/:engine/:rowKey/claim", engines, post(access.DeadLettersDecide, a.claimDeadLetter)},
		{"/api/dlq/:engine/:rowKey/assign", engines, post(access.DeadLettersDecide, a.assignDeadLetter)},
		{"/api/dlq/:engine/:rowKey/release", engines, post(access.DeadLettersDecide, a.releaseDeadLetter)},
		{"/api/timeline/:correlationId", engines, get(access.TimelineRead, a.getTimeline)},
		{"/api/openapi.json", engines, get(access.Self, a.openAPI)},
		{"/api/audit", engines, get(access.AuditRead, a.listAudit)},
		{"/api/workflow/outbox", outboxes, get(access.OutboxRead, a.listOutbox)},
		{"/api/workflow/outbox/metrics", outboxes, get(access.PlatformRead, a.snapshot)},
		{"/api/workflow/outbox/backlog", backlogs, get(access.OutboxRead, a.outboxBacklog)},
		{"/api/workflow/outbox/circuits", circuits, get(access.PlatformRead, a.outboxCircuits)},
		{"/api/workflow/outbox/replay", outboxes, post(access.OutboxReplay, a.replayMany)},
		{"/api/workflow/outbox/:tenant/:id", outboxes, get(access.OutboxRead, a.getOutbox)},
		{"/api/workflow/outbox/:tenant/:id/retry", outboxes, post(access.OutboxDecide, a.acts(outbox.ActionRetry))},
		{"/api/workflow/outbox/:tenant/:id/skip", outboxes, post(access.OutboxDecide, a.acts(outbox.ActionSkip))},
		{"/api/workflow/outbox/:tenant/:id/replay", outboxes, post(access.OutboxDecide, a.acts(outbox.ActionReplay))},
		{"/api/tasks", humanTasks, get(access.TasksRead, a.listTasks)},
		{"/api/tasks/:orchestration/:task", humanTasks, get(access.TasksRead, a.getTask)},
		{"/api/tasks/:orchestration/:task/claim", humanTasks, post(access.TasksAct, a.acted("claim"))},
		{"/api/tasks/:orchestration/:task/release", humanTasks, post(access.TasksAct, a.acted("release"))},
		{"/api/tasks/:orchestration/:task/assign", humanTasks, post(access.TasksAct, a.acted("assign"))},
		{"/api/tasks/:orchestration/:task/reassign", humanTasks, post(access.TasksAct, a.acted("reassign"))},
		{"/api/tasks/:orchestration/:task/complete", humanTasks, post(access.TasksAct, a.acted("complete"))},
		{"/api/acknowledgements", credentials, methods{http.MethodGet: {access.AcknowledgementsRead, a.listAcknowledgements}, http.MethodPost: {access.AcknowledgementsSend, a.acknowledge}}},
		{"/api/credentials", expiries, get(access.PlatformRead, a.listCredentials)},
		{"/api/orchestrations", orchestrations, methods{http.MethodGet: {access.OrchestrationsRead, a.listOrchestrations}, http.MethodPost: {access.OrchestrationsStart, a.startOrchestration}}},
		{"/api/orchestrations/purge", orchestrations, post(access.OrchestrationsPurge, a.purgeMany)},
		{openHistoryPath, orchestrations, post(access.OrchestrationsRead, a.openHistory)},
		{"/api/orchestrations/:orchestration", orchestrations, methods{http.MethodGet: {access.OrchestrationsRead, a.getOrchestration}, http.MethodDelete: {access.OrchestrationsPurge, a.purgeOrchestration}}},
		{"/api/orchestrations/:orchestration/rounds", orchestrations, get(access.OrchestrationsRead, a.listRounds)},
		{"/api/orchestrations/:orchestration/history", orchestrations, get(access.OrchestrationsRead, a.getOrchestrationHistory)},
		{"/api/orchestrations/:orchestration/events/:event", orchestrations, post(access.OrchestrationsSend, a.raiseEvent)},
		{"/api/orchestrations/:orchestration/suspend", orchestrations, post(access.OrchestrationsCommand, a.commanded("suspend"))},
		{"/api/orchestrations/:orchestration/resume", orchestrations, post(access.OrchestrationsCommand, a.commanded("resume"))},
		{"/api/orchestrations/:orchestration/cancel", orchestrations, post(access.OrchestrationsCommand, a.commanded("cancel"))},
		{"/api/orchestrations/:orchestration/terminate", orchestrations, post(access.OrchestrationsCommand, a.commanded("terminate"))},
		{"/api/orchestrations/:orchestration/rewind", orchestrations, post(access.OrchestrationsCommand, a.revived("rewind", (*orchestrator.Runtime).Rewind))},
		{"/api/orchestrations/:orchestration/restart", orchestrations, post(access.OrchestrationsCommand, a.revived("restart", (*orchestrator.Runtime).Restart))},
		{"/api/registry", instances, methods{http.MethodGet: {access.RegistryRead, a.listInstances}, http.MethodPost: {access.RegistryWrite, a.createInstance}}},
		{"/api/registry/:instance", instances, methods{http.MethodGet: {access.RegistryRead, a.getInstance}, http.MethodPatch: {access.RegistryWrite, a.changeInstance}, http.MethodDelete: {access.RegistryWrite, a.removeInstance}}},
		{"/api/registry/:instance/drain", instances, post(access.RegistryWrite, a.drainInstance)},
		{"/api/registry/:instance/resume", instances, post(access.RegistryWrite, a.resumeInstance)},
		{"/api/registry/:instance/unlock", instanceRuns, post(access.RegistryWrite, a.unlockInstance)},
		{"/api/schedules", scheduled, get(access.PlatformRead, a.listSchedules)},
		{"/api/schedules/:engine/run", scheduled, post(access.SchedulesRun, a.runSchedule)},
		{"/api/nodes", fleet, get(access.PlatformRead, a.listNodes)},
		{"/api/operations", listedOperations, get(access.OperationsRead, a.listOperations)},
		{"/api/operations/:operation", operations, get(access.OperationsRead, a.getOperation)},
		{"/api/operations/:operation/cancel", operations, post(access.OperationsCancel, a.commandedOperation("cancel", (*bulk.Operations).Cancel))},
		{"/api/operations/:operation/pause", operations, post(access.OperationsCancel, a.commandedOperation("pause", (*bulk.Operations).Pause))},
		{"/api/operations/:operation/resume", operations, post(access.OperationsCancel, a.commandedOperation("resume", (*bulk.Operations).Resume))},
		{"/api/metrics", scrapes, get(access.PlatformRead, a.scrape)},
		{"/api/health/live", probes, get(access.Public, a.live)},
		{"/api/health/ready", probes, get(access.Public, a.ready)},
		{"/api/health/full", probes, get(access.PlatformRead, a.full)},
	}...)
}

// check refuses an endpoint without a permission.
func (a *api) check() error {
	var errs []error
	for _, r := range a.resources() {
		for verb, m := range r.methods {
			if !m.need.Known() {
				errs = append(errs, fmt.Errorf("%s %s needs the unknown permission %q", verb, r.path, m.need))
			}
		}
	}
	return errors.Join(errs...)
}

// Route is one method of one path of the API, and the permission that it needs; segments that begin with a colon are
// parameters.
type Route struct {
	Method     string            `json:"method"`
	Path       string            `json:"path"`
	Permission access.Permission `json:"permission,omitempty"`
}

// Routes lists all routes of the API, with every part of Config set, in the order of the paths. Register does not
// know them: it registers every method of a path.
func Routes() []Route {
	var routes []Route
	for _, r := range (&api{}).resources() {
		for verb, m := range r.methods {
			routes = append(routes, Route{verb, r.path, m.need})
		}
	}
	slices.SortFunc(routes, func(a, b Route) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return routes
}
