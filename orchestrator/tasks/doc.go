// Package tasks stores human tasks: the question of an orchestration, its assignee and its answer (persistence
// document, sections 2.2, 2.3 and 7.2).
//
// A task ends once: one person completes it, or its orchestration cancels it. One insert decides. Every change is one
// transaction with an immutable event, and fails with ErrConflict or ErrChanged when another change was faster. The
// package checks permissions, by the task's effective roles.
//
// Storage keys: in the partition of the orchestration, task-{id} (the current task), task-{id}-{seq} (its events) and
// task-{id}-end (its end), where the id is the waiting token of the orchestration's wait. The index table has one
// partition, tasks, whose rows can be rebuilt from these: m-{task} lists the index keys of a task. The other rows are
// views for lists: o- open, a- by assignee, r- by role, e- by orchestrator, t- by tenant, all in the order of their
// due times, and c- ended, newest first.
package tasks
