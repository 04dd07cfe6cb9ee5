package timeline

import (
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
)

// tellTasks adds users' actions on the tasks of a run. The rounds have the creation of a task already; a task without
// rows, or of another tenant, appears by the rounds only.
func (g *gathering) tellTasks(ctx context.Context, t *teller) error {
	if !t.asked || g.Tasks == nil || !g.mayRead() {
		return nil
	}
	all, more, err := g.Tasks.Of(ctx, t.run.id, taskRows)
	if err != nil {
		return err
	}
	if more {
		g.truncated.Store(true)
	}
	created := map[string]*Item{}
	for i := range t.items {
		if task := t.items[i].Task; task != nil {
			created[task.TaskID] = &t.items[i]
		}
	}
	var items []Item
	for _, task := range all {
		if of := created[task.ID]; of != nil && g.sees(task.TenantID) {
			items = append(items, tellTask(task, of)...)
		}
	}
	t.items = append(t.items, items...)
	return nil
}

// tellTask returns the events of a task since its creation.
func tellTask(task tasks.Task, created *Item) (items []Item) {
	about := created.Task
	about.DueAt = task.DueAt
	for n, e := range task.Events {
		body := Task{Where: about.Where, Call: about.Call, TaskID: about.TaskID, Name: about.Name, What: e.Kind, By: e.By, ByName: e.ByName,
			Assignee: e.Assignee, AssigneeName: e.AssigneeName, Roles: e.Roles, Note: e.Note}
		if e.Kind == tasks.EventCreated {
			about.Assignee, about.AssigneeName, about.Roles = e.Assignee, e.AssigneeName, e.Roles
			continue
		}
		items = append(items, Item{ID: fmt.Sprintf("%s/%d", created.ID, n), At: e.At, Kind: KindTask, Engine: created.Engine, Task: &body})
	}
	return items
}

// deliveredAs completes a publication with the outbox's data.
func (i *Item) deliveredAs(r outbox.Record) {
	p := i.Publication
	p.Status, p.RetryCount, p.NextAt, p.RevivedAt, p.SkippedBy, p.Error = r.Status, r.RetryCount, r.NextAttemptAt, r.RevivedAt, r.SkippedBy, r.Error
	switch r.Status {
	case outbox.StatusDead:
		i.EndedAt = r.DeadAt
	case outbox.StatusProcessed, outbox.StatusSkipped:
		i.EndedAt = r.ProcessedAt
	case outbox.StatusPending:
	}
}

// deliveries returns the attempts that the outbox keeps.
func deliveries(r outbox.Record, engine string) (items []Item) {
	same := map[int64]int{} // the log keeps the latest, so an attempt has no permanent number
	for _, a := range r.Attempts {
		at := a.At.UnixMicro()
		same[at]++
		items = append(items, Item{ID: fmt.Sprintf("delivery/%s/%s/%d/%d", r.TenantID, r.ID, at, same[at]), At: a.At, Kind: KindDelivery, Engine: engine,
			Delivery: &Delivery{TenantID: r.TenantID, EventID: r.ID, EventType: r.EventType, Destination: a.Destination, Node: a.Node,
				TookMs: a.TookMilliseconds, StatusCode: a.Status, Error: a.Error}})
	}
	return items
}
