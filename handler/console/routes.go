package console

import (
	"net/http"

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
		{api.Route{Method: http.MethodGet, Path: operationPath, Permission: access.OperationsRead}, showOperation},
		{api.Route{Method: http.MethodPost, Path: operationPath + "/cancel", Permission: access.OperationsCancel}, cancelOperation},
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
