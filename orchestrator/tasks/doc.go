// Package tasks keeps human tasks: what an orchestration asks of a person, who has it, and what came of it (persistence
// document, sections 2.2, 2.3 and 7.2).
//
// It promises that a task ends once: completed by one person, or canceled by its orchestration, decided by one insert.
// Every change is one transaction with an event that is never changed again, and is refused when somebody else was
// faster. Who may do what is decided here, by the task's effective roles.
//
// Storage keys: in the partition of the orchestration, task-{id} (the task as it stands), task-{id}-{seq} (its events) and
// task-{id}-end (how it ended), where the id is the waiting token of the orchestration's wait. The table of the index has
// one partition, tasks, whose rows can be made again from these: m-{task} says what the index holds of a task, the other
// rows are views, which a list reads: o- open, a- by assignee, r- by role, e- by orchestrator, t- by tenant, all in the
// order of their due times, and c- ended, newest first.
package tasks
