package console

import (
	"net/http"
	"slices"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
)

// route is a page, or the target of a form.
type route struct {
	api.Route
	visit visitor
}

// routeOf returns the route of a method and a path, for callers with a permission.
func routeOf(method, path string, need access.Permission, visit visitor) route {
	return route{api.Route{Method: method, Path: path, Permission: need}, visit}
}

const (
	lettersPath = Root + "/dead-letters"
	causesPath  = lettersPath + "/causes"
	letterPath  = lettersPath + "/:engine/:rowKey"

	timelinePath = Root + "/timeline"
)

// routes returns all of them. Each has the permission of its first API request, which decides.
func (c *Console) routes() []route {
	return slices.Concat(letterRoutes(), editRoutes(), selectedRoutes(), holdingRoutes(), orchestrationRoutes(), taskRoutes(), operationRoutes(), pollerRoutes(), platformRoutes())
}

// platformRoutes are those of the app itself, and of its user.
func platformRoutes() []route {
	return []route{
		routeOf(http.MethodGet, mePath, access.Self, aboutMe),
		routeOf(http.MethodGet, auditPath, access.AuditRead, auditLog),
		routeOf(http.MethodGet, schedulesPath, access.PlatformRead, scheduleList),
		routeOf(http.MethodGet, runPath, access.PlatformRead, askRun),
		routeOf(http.MethodPost, runPath, access.SchedulesRun, doRun),
		routeOf(http.MethodGet, registryPath, access.RegistryRead, instances),
		routeOf(http.MethodGet, instancePath, access.RegistryRead, instance),
		routeOf(http.MethodGet, instancePath+"/drain", access.RegistryRead, askInstance(drain())),
		routeOf(http.MethodPost, instancePath+"/drain", access.RegistryWrite, doInstance(drain())),
		routeOf(http.MethodGet, instancePath+"/resume", access.RegistryRead, askInstance(resume())),
		routeOf(http.MethodPost, instancePath+"/resume", access.RegistryWrite, doInstance(resume())),
	}
}

// letterRoutes are those of the first page, dead letters and the timeline.
func letterRoutes() []route {
	return []route{
		routeOf(http.MethodGet, Root, access.Self, home),
		routeOf(http.MethodGet, lettersPath, access.DeadLettersRead, letters),
		routeOf(http.MethodGet, causesPath, access.DeadLettersRead, causes),
		routeOf(http.MethodGet, letterPath, access.DeadLettersRead, letter),
		routeOf(http.MethodGet, letterPath+"/retry", access.DeadLettersRead, confirm(retry())),
		routeOf(http.MethodPost, letterPath+"/retry", access.DeadLettersDecide, decide(retry())),
		routeOf(http.MethodGet, letterPath+"/expire", access.DeadLettersRead, confirm(expire())),
		routeOf(http.MethodPost, letterPath+"/expire", access.DeadLettersDecide, decide(expire())),
		routeOf(http.MethodGet, timelinePath, access.TimelineRead, timeline),
		routeOf(http.MethodGet, retryAllPath, access.DeadLettersRead, askAll(retryAll())),
		routeOf(http.MethodPost, retryAllPath, access.DeadLettersBulk, startAll(retryAll())),
		routeOf(http.MethodGet, expireAllPath, access.DeadLettersRead, askAll(expireAll())),
		routeOf(http.MethodPost, expireAllPath, access.DeadLettersBulk, startAll(expireAll())),
		routeOf(http.MethodGet, outboxPath, access.OutboxRead, showOutbox),
		routeOf(http.MethodGet, eventPath, access.OutboxRead, showEvent),
		routeOf(http.MethodGet, eventPath+"/retry", access.OutboxRead, askAct(retryEvent())),
		routeOf(http.MethodPost, eventPath+"/retry", access.OutboxDecide, doAct(retryEvent())),
		routeOf(http.MethodGet, eventPath+"/skip", access.OutboxRead, askAct(skipEvent())),
		routeOf(http.MethodPost, eventPath+"/skip", access.OutboxDecide, doAct(skipEvent())),
		routeOf(http.MethodGet, eventPath+"/replay", access.OutboxRead, askAct(replayEvent())),
		routeOf(http.MethodPost, eventPath+"/replay", access.OutboxDecide, doAct(replayEvent())),
	}
}

// Routes returns the routes of the console, with the permission that each needs. The styles and scripts of pages are
// public.
func Routes() []api.Route {
	var all []api.Route
	for _, r := range (&Console{}).routes() {
		all = append(all, r.Route)
	}
	return all
}
