// Package health reports the health of the program and its dependencies (outbox document, "Open Decisions", 7).
//
// It has three probes, each a superset of the previous one: live checks only that the process answers, ready that
// storage is prepared and answers, and full also compares the outbox and stalled orchestrations with their
// thresholds, and checks whether a host listens to the queues. A probe runs its checks in parallel, each with its own
// timeout, and its report is cached for some seconds: a probe never overloads storage, even if it is public. Failures
// are logged; a report contains only their kinds.
//
// A Report is JSON by the draft of application/health+json: pass, warn and fail; in words they are Healthy, Degraded
// and Unhealthy.
//
// The package owns no storage keys; it only reads.
package health
