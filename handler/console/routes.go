package console

import (
	"net/http"
	"slices"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
)

// route is a page, or what a form is sent to.
type route struct {
	api.Route
	visit visitor
}

const (
	lettersPath = Root + "/dead-letters"
	causesPath  = lettersPath + "/causes"
	letterPath  = lettersPath + "/:engine/:rowKey"

	timelinePath = Root + "/timeline"
)

// routes are all of them. Each has the permission of what it asks the API for first, which decides.
func (c *Console) routes() []route {
	return slices.Concat(letterRoutes(), editRoutes(), selectedRoutes(), holdingRoutes(), orchestrationRoutes(), taskRoutes(), operationRoutes(), pollerRoutes(), platformRoutes())
}

// platformRoutes are those of the app itself, and of who uses it.
func platformRoutes() []route {
	return []route{
		{api.Route{Method: http.MethodGet, Path: mePath, Permission: access.Self}, aboutMe},
		{api.Route{Method: http.MethodGet, Path: auditPath, Permission: access.AuditRead}, auditLog},
		{api.Route{Method: http.MethodGet, Path: schedulesPath, Permission: access.PlatformRead}, scheduleList},
		{api.Route{Method: http.MethodGet, Path: runPath, Permission: access.PlatformRead}, askRun},
		{api.Route{Method: http.MethodPost, Path: runPath, Permission: access.SchedulesRun}, doRun},
		{api.Route{Method: http.MethodGet, Path: registryPath, Permission: access.RegistryRead}, instances},
		{api.Route{Method: http.MethodGet, Path: instancePath, Permission: access.RegistryRead}, instance},
		{api.Route{Method: http.MethodGet, Path: instancePath + "/drain", Permission: access.RegistryRead}, askInstance(drain())},
		{api.Route{Method: http.MethodPost, Path: instancePath + "/drain", Permission: access.RegistryWrite}, doInstance(drain())},
		{api.Route{Method: http.MethodGet, Path: instancePath + "/resume", Permission: access.RegistryRead}, askInstance(resume())},
		{api.Route{Method: http.MethodPost, Path: instancePath + "/resume", Permission: access.RegistryWrite}, doInstance(resume())},
	}
}

// letterRoutes are those of the first page, dead letters and the timeline.
func letterRoutes() []route {
	return []route{
		{api.Route{Method: http.MethodGet, Path: Root, Permission: access.Self}, home},
		{api.Route{Method: http.MethodGet, Path: lettersPath, Permission: access.DeadLettersRead}, letters},
		{api.Route{Method: http.MethodGet, Path: causesPath, Permission: access.DeadLettersRead}, causes},
		{api.Route{Method: http.MethodGet, Path: letterPath, Permission: access.DeadLettersRead}, letter},
		{api.Route{Method: http.MethodGet, Path: letterPath + "/retry", Permission: access.DeadLettersRead}, confirm(retry())},
		{api.Route{Method: http.MethodPost, Path: letterPath + "/retry", Permission: access.DeadLettersDecide}, decide(retry())},
		{api.Route{Method: http.MethodGet, Path: letterPath + "/expire", Permission: access.DeadLettersRead}, confirm(expire())},
		{api.Route{Method: http.MethodPost, Path: letterPath + "/expire", Permission: access.DeadLettersDecide}, decide(expire())},
		{api.Route{Method: http.MethodGet, Path: timelinePath, Permission: access.TimelineRead}, timeline},
		{api.Route{Method: http.MethodGet, Path: retryAllPath, Permission: access.DeadLettersRead}, askAll(retryAll())},
		{api.Route{Method: http.MethodPost, Path: retryAllPath, Permission: access.DeadLettersBulk}, startAll(retryAll())},
		{api.Route{Method: http.MethodGet, Path: expireAllPath, Permission: access.DeadLettersRead}, askAll(expireAll())},
		{api.Route{Method: http.MethodPost, Path: expireAllPath, Permission: access.DeadLettersBulk}, startAll(expireAll())},
		{api.Route{Method: http.MethodGet, Path: outboxPath, Permission: access.OutboxRead}, showOutbox},
		{api.Route{Method: http.MethodGet, Path: eventPath, Permission: access.OutboxRead}, showEvent},
		{api.Route{Method: http.MethodGet, Path: eventPath + "/retry", Permission: access.OutboxRead}, askAct(retryEvent())},
		{api.Route{Method: http.MethodPost, Path: eventPath + "/retry", Permission: access.OutboxDecide}, doAct(retryEvent())},
		{api.Route{Method: http.MethodGet, Path: eventPath + "/skip", Permission: access.OutboxRead}, askAct(skipEvent())},
		{api.Route{Method: http.MethodPost, Path: eventPath + "/skip", Permission: access.OutboxDecide}, doAct(skipEvent())},
		{api.Route{Method: http.MethodGet, Path: eventPath + "/replay", Permission: access.OutboxRead}, askAct(replayEvent())},
		{api.Route{Method: http.MethodPost, Path: eventPath + "/replay", Permission: access.OutboxDecide}, doAct(replayEvent())},
	}
}

// Routes are what the console answers to, with the permission that each needs. The styles and scripts of pages are for anybody.
func Routes() []api.Route {
	var all []api.Route
	for _, r := range (&Console{}).routes() {
		all = append(all, r.Route)
	}
	return all
}
