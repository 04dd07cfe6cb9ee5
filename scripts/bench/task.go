package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// fewTasks and manyTasks are the compared sizes of the worklists.
	fewTasks  = 100
	manyTasks = 10_000
	taskPage  = 50
)

// clerk returns the person who completes tasks.
func clerk() tasks.Person { return tasks.Person{ID: "clerk", Roles: []string{"clerk"}} }

// taskCompletion counts the cost of completing a human task, and then of waking its orchestration.
func taskCompletion() scenario {
	metrics := []metric{
		{"task/complete_tx", "transactions", "budget 6: read, look-out for the sweeper, end, signal, and the index, which is read and written"},
		{"task/wake_tx", "transactions", "budget 7: as an event, the answer is read, and that the index has the task is made sure"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		w := newWaitingRoom()
		rt, err := w.start(ctx, "wait", aPerson)
		if err != nil {
			return nil, err
		}
		began := len(w.count.Calls())
		_, err = rt.Tasks().Complete(ctx, tasks.Ref{Orchestration: "a", ID: "1-1"}, clerk(), []byte(`"done"`), "", "")
		completed := len(w.count.Calls())
		if err == nil {
			err = w.signal(ctx, rt.SignalQueue(), orchestrator.Completed)
		}
		return []float64{float64(completed - began), float64(len(w.count.Calls()) - completed)}, err
	}}
}

// taskLists measures how much longer a page of a role's tasks takes with many tasks than with few.
func taskLists() scenario {
	metrics := []metric{{fmt.Sprintf("task/list/%d/ratio", manyTasks), "ratio", fmt.Sprintf("goal 1.3 or less: the time of a page of %d tasks, divided by that of a page of %d", manyTasks, fewTasks)}}
	return scenario{metrics, func(ctx context.Context, d time.Duration) ([]float64, error) {
		few, err := worklist(ctx, fewTasks)
		if err != nil {
			return nil, err
		}
		many, err := worklist(ctx, manyTasks)
		if err != nil {
			return nil, err
		}
		times, err := inTurns(ctx, d, few, many)
		if err != nil {
			return nil, err
		}
		return []float64{times[1] / times[0]}, nil
	}}
}

// worklist returns a page of a service with so many open tasks. It has to cost one transaction.
func worklist(ctx context.Context, n int) (func(context.Context) error, error) {
	store, plan := tables.NewMemory(), &faults.Plan{}
	service := tasks.NewService(tasks.Config{Tables: faults.Tables(store, plan.Intercept), Table: "orchestrations", Index: "index"})
	if err := errors.Join(store.CreateTable(ctx, "orchestrations"), store.CreateTable(ctx, "index")); err != nil {
		return nil, err
	}
	for i := range n {
		task := tasks.Task{Ref: tasks.Ref{Orchestration: fmt.Sprint("o", i), ID: "1-1"}, Name: "look", Roles: clerk().Roles, Seq: 1,
			CreatedAt: time.Unix(int64(i), 0), ChangedAt: time.Unix(int64(i), 0)}
		if err := service.Sync(ctx, task); err != nil {
			return nil, err
		}
	}
	page := func(ctx context.Context) error {
		page, err := service.List(ctx, tasks.Filter{Role: clerk().Roles[0]}, taskPage, "")
		if err == nil && len(page.Tasks) != taskPage {
			err = fmt.Errorf("a page has %d tasks, want %d", len(page.Tasks), taskPage)
		}
		return err
	}
	before := len(plan.Calls())
	if err := page(ctx); err != nil {
		return nil, err
	}
	if cost := len(plan.Calls()) - before; cost != 1 {
		return nil, fmt.Errorf("a page of %d tasks costs %d transactions", n, cost)
	}
	return page, nil
}

// askClerk returns an orchestration that waits for a human task.
func askClerk(ctx *orchestrator.Context) (string, error) {
	said, err := orchestrator.AskPerson[string](ctx, orchestrator.HumanTask{Name: "look", Roles: clerk().Roles}).Await()
	return said.Output, err
}
