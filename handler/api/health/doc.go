// Package health says how the program and what it needs are (outbox document, "Open Decisions", 7).
//
// There are three probes, each a superset of the one before: live asks nothing but whether the process answers, ready asks
// whether storage is prepared and does, and full also holds the outbox, and the orchestrations whose code cannot go on, against their
// thresholds, and says whether anybody listens to the queues. A probe asks each of its checks at the
// same time, each under a time-out of its own, and its report is shared by all who ask within some seconds: a probe never
// hammers storage, whoever may call it. What failed is logged; a report tells the kind of trouble only.
//
// A Report is JSON as the draft of application/health+json has it: pass, warn and fail; in words they are Healthy, Degraded
// and Unhealthy.
//
// The package owns no storage keys; it reads.
package health
