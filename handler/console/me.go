package console

import (
	"context"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

const mePath = Root + "/me"

// mePage shows the user, their permissions, and the running nodes.
type mePage struct {
	Who         whoami
	Permissions []permissionRow
	Nodes       part[nodeList]
	// Next is the address of more nodes, "" at the end.
	Next string
}

// whoami is the API's answer about the user.
type whoami struct {
	me
	TenantID      Text   `json:"tenantId"`
	Roles         []Text `json:"roles"`
	GroupsMissing bool   `json:"groupsMissing"`
}

// permissionRow is a permission, its meaning, and whether the user has it.
type permissionRow struct {
	Name  access.Permission
	Means string
	Has   bool
}

// meanings explains permissions.
func meanings() map[access.Permission]string {
	return map[access.Permission]string{
		access.Self:                     "ask who one is, and what one may do",
		access.PlatformRead:             "see engines, schedules, nodes, metrics and health",
		access.HistoryRead:              "see the history of runs",
		access.TimelineRead:             "see the timeline of a piece of work",
		access.DeadLettersRead:          "see dead letters",
		access.DeadLettersDecide:        "retry or expire a dead letter",
		access.DeadLettersEdit:          "retry a dead letter with an edited message",
		access.DeadLettersBulk:          "retry or expire all dead letters that a filter selects",
		access.OrchestrationsRead:       "see runs",
		access.OrchestrationsStart:      "start runs",
		access.OrchestrationsSend:       "send events to runs",
		access.OrchestrationsCommand:    "suspend, resume, cancel, terminate, rewind and restart runs",
		access.OrchestrationsPurge:      "delete what is kept of runs that have ended",
		access.OrchestrationsForcePurge: "delete runs that have not ended",
		access.OutboxRead:               "see events of the outbox",
		access.OutboxDecide:             "retry, skip or replay an event",
		access.OutboxReplay:             "replay all events that a filter selects",
		access.OperationsRead:           "see work on many things at a time",
		access.OperationsCancel:         "cancel work on many things at a time",
		access.TasksRead:                "see human tasks",
		access.TasksAct:                 "claim and answer human tasks, as their roles and assignee allow",
		access.TasksAdminister:          "claim and answer human tasks, whatever their roles and assignee are",
		access.AcknowledgementsRead:     "see who has taken up which version of a credential",
		access.AcknowledgementsSend:     "say that one has taken up a version of a credential",
		access.RegistryRead:             "see instances of the registry",
		access.RegistryWrite:            "add, change, drain, resume, unlock and remove instances",
		access.SchedulesRun:             "send now what a schedule would",
		access.PollersRead:              "see pollers, and how far they are behind their databases",
		access.PollersChange:            "change where pollers go on, take their leases and retire them",
		access.AuditRead:                "see who did what",
	}
}

// nodeList are the processes that run the app, the latest start first.
type nodeList struct {
	Items []nodeItem `json:"items"`
	Token string     `json:"continuationToken"`
}

func (l nodeList) empty() bool { return len(l.Items) == 0 }

// nodeItem is a process that runs the app, or has run it within a day.
type nodeItem struct {
	Node     Text      `json:"node"`
	Host     Text      `json:"host"`
	Version  Text      `json:"version"`
	State    Text      `json:"state"`
	Since    time.Time `json:"sinceUtc"`
	Seen     time.Time `json:"seenUtc"`
	InHand   int       `json:"inHand"`
	TakenBy  Text      `json:"takenBy"`
	TakenAt  time.Time `json:"takenAtUtc"`
	Finished bool      `json:"finished"`
}

// aboutMe shows the user, their permissions, and the version of each node.
func aboutMe(ctx context.Context, v *visit) (page, error) {
	var p mePage
	if err := v.api.get(ctx, "/api/me", nil, &p.Who); err != nil {
		return page{}, err
	}
	means := meanings()
	for _, name := range access.Permissions() {
		p.Permissions = append(p.Permissions, permissionRow{Name: name, Means: means[name], Has: v.may(name)})
	}
	asked := url.Values{}
	if token := v.r.URL.Query().Get("continuationToken"); token != "" {
		asked.Set("continuationToken", token)
	}
	p.Nodes = ask[nodeList](ctx, v, access.PlatformRead, "/api/nodes", asked)
	p.Next = oneParameter(mePath, "continuationToken", p.Nodes.Data.Token)
	return page{template: "me", title: "Me", model: p, elsewhere: v.thing(p.Who.ID, showLine("whoami"))}, nil
}
