package client

import (
	"encoding/json"
	"time"
)

// Page is a page of a list; Token continues it, "" on the last page. Items are the API's JSON.
type Page struct {
	Items []json.RawMessage `json:"items"`
	Token string            `json:"continuationToken,omitempty"`
}

// HistoryItem is an entry of the history in lists.
type HistoryItem struct {
	Engine        string    `json:"engine"`
	RowKey        string    `json:"rowKey"`
	InstanceID    string    `json:"instanceId"`
	Operation     string    `json:"operation"`
	Status        string    `json:"status"`
	DurationMs    int64     `json:"durationMs"`
	CreatedAt     time.Time `json:"createdAtUtc"`
	CorrelationID string    `json:"correlationId"`
	// SupersededBy is the entry of the run's later success, "" for none.
	SupersededBy string `json:"supersededBy"`
}

// DeadLetterItem is a dead letter in lists.
type DeadLetterItem struct {
	Engine        string    `json:"engine"`
	RowKey        string    `json:"rowKey"`
	InstanceID    string    `json:"instanceId"`
	ErrorMessage  string    `json:"errorMessage"`
	DequeueCount  int       `json:"dequeueCount"`
	Status        string    `json:"status"`
	LastFailureAt time.Time `json:"lastFailureAtUtc"`
	CorrelationID string    `json:"correlationId"`
	RetryCount    int       `json:"retryCount"`
}

// DeadLetterDetail holds the fields of a dead letter for its retry.
type DeadLetterDetail struct {
	DeadLetterItem
	DetectedReason string `json:"detectedReason"`
}

// DeadLetterMessage holds the fields of a dead letter for an edit of its message.
type DeadLetterMessage struct {
	OriginalMessage         string `json:"originalMessage"`
	OriginalMessageEncoding string `json:"originalMessageEncoding"`
}

// DeadLetterGroup is dead letters of one error.
type DeadLetterGroup struct {
	Signature     string         `json:"errorSignature"`
	Count         int            `json:"count"`
	Engines       []string       `json:"engines"`
	LastFailureAt time.Time      `json:"lastFailureAtUtc"`
	Sample        DeadLetterItem `json:"sample"`
}

// DeadLetterGroups are the groups of the newest dead letters; Complete means that they include all.
type DeadLetterGroups struct {
	Items    []DeadLetterGroup `json:"items"`
	Examined int               `json:"examined"`
	Complete bool              `json:"complete"`
}

// DeadLetterCount is the number of dead letters of an engine.
type DeadLetterCount struct {
	Engine   string `json:"engine"`
	Pending  int    `json:"pending"`
	Resolved int    `json:"resolved"`
	Expired  int    `json:"expired"`
}

// OrchestrationItem is an orchestration in lists.
type OrchestrationItem struct {
	ID           string    `json:"id"`
	Orchestrator string    `json:"orchestrator"`
	ParentID     string    `json:"parentId"`
	Status       string    `json:"status"`
	Execution    int       `json:"execution"`
	WaitingFor   string    `json:"waitingFor"`
	WaitingUntil time.Time `json:"waitingUntilUtc"`
	Late         bool      `json:"late"` // the time has passed
	CreatedAt    time.Time `json:"createdAtUtc"`
	UpdatedAt    time.Time `json:"updatedAtUtc"`
	EndedAt      time.Time `json:"endedAtUtc"`
	ErrorCode    string    `json:"errorCode"`
}

// OrchestrationDetail holds the first shown fields of an orchestration. StatusSince is set for Retrying and Stalled.
type OrchestrationDetail struct {
	OrchestrationItem
	Attempt     int       `json:"attempt"`
	StatusSince time.Time `json:"statusSinceUtc"`
	Failure     *Failure  `json:"failure"`
}

// Failure is an error of an orchestration.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// OrchestrationChange is a change of an orchestration's state.
type OrchestrationChange struct {
	OrchestrationID string   `json:"orchestrationId"`
	Attempt         int      `json:"attempt"`
	What            string   `json:"what"`
	Reason          string   `json:"reason"`
	Error           *Failure `json:"error"`
}

// TaskItem is a human task in lists.
type TaskItem struct {
	OrchestrationID string    `json:"orchestrationId"`
	TaskID          string    `json:"taskId"`
	Name            string    `json:"name"`
	Status          string    `json:"status"`
	Roles           []string  `json:"roles"`
	Assignee        string    `json:"assignee"`
	AssigneeName    string    `json:"assigneeName"`
	DueAt           time.Time `json:"dueAtUtc"`
}

// InstanceItem is an instance of the registry in lists.
type InstanceItem struct {
	InstanceID string       `json:"instanceId"`
	TenantID   string       `json:"tenantId"`
	Ring       string       `json:"ring"`
	Version    string       `json:"version"`
	Lock       InstanceLock `json:"lock"`
	Damaged    string       `json:"damaged"`
}

// InstanceLock is the lock of an instance.
type InstanceLock struct {
	Held      bool      `json:"held"`
	JobID     string    `json:"jobId"`
	Until     time.Time `json:"untilUtc"`
	DrainedBy string    `json:"drainedBy"`
}

// ScheduleItem is a schedule target in lists.
type ScheduleItem struct {
	Engine   string    `json:"engine"`
	Schedule string    `json:"schedule"`
	Item     string    `json:"item"`
	Cron     string    `json:"cron"`
	Source   string    `json:"source"`
	NextAt   time.Time `json:"nextAtUtc"`
	Slot     time.Time `json:"slotUtc"`
	Messages int       `json:"messages"`
	Result   string    `json:"result"`
	Error    string    `json:"error"`
	Failures int       `json:"failures"`
}

// NodeItem is a process of the app in lists.
type NodeItem struct {
	Node      string    `json:"node"`
	Version   string    `json:"version"`
	State     string    `json:"state"`
	Since     time.Time `json:"sinceUtc"`
	Seen      time.Time `json:"seenUtc"`
	InHand    int       `json:"inHand"`
	TakenBy   string    `json:"takenBy"`
	TakenAt   time.Time `json:"takenAtUtc"`
	TakenOver int       `json:"takenOver"`
	Finished  bool      `json:"finished"`
}

// OutboxItem is a message of the outbox in lists.
type OutboxItem struct {
	ID         string    `json:"id"`
	Tenant     string    `json:"tenantId"`
	EventType  string    `json:"eventType"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"createdAt"`
	RetryCount int       `json:"retryCount"`
	LastError  string    `json:"lastErrorSnippet"`
	// CorrelationID is that of the run that sent it.
	CorrelationID string `json:"correlationId"`
}

// Operation is a bulk operation.
type Operation struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	// Request is the request of the operation.
	Request struct {
		Action string `json:"action"`
		By     string `json:"by"`
	} `json:"request"`
	Progress  Progress  `json:"progress"`
	CreatedAt time.Time `json:"createdAt"`
	Error     *Error    `json:"error"`
}

// Progress is the progress of an operation: changed rows, failed rows, and rows of the canary that were dead-lettered
// again.
type Progress struct {
	Done       int `json:"done"`
	PassedOver int `json:"passedOver"`
	Returned   int `json:"returned"`
}

// Ended reports whether the operation has ended.
func (o Operation) Ended() bool {
	return o.Status != "NotStarted" && o.Status != "Running" && o.Status != "Paused"
}

// Health is the report of a health endpoint, in the form of the draft for application/health+json.
type Health struct {
	Status    string                   `json:"status"`
	ReleaseID string                   `json:"releaseId"`
	Checks    map[string][]HealthCheck `json:"checks"`
}

// HealthCheck is one check of a report.
type HealthCheck struct {
	Status        string          `json:"status"`
	Output        string          `json:"output"`
	ObservedValue json.RawMessage `json:"observedValue"`
	ObservedUnit  string          `json:"observedUnit"`
}

// Me is the caller's identity in the API.
type Me struct {
	Kind          string   `json:"kind"`
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	TenantID      string   `json:"tenantId"`
	AppRoles      []string `json:"appRoles"`
	Roles         []string `json:"roles"`
	Permissions   []string `json:"permissions"`
	Scope         string   `json:"scope"`
	GroupsMissing bool     `json:"groupsMissing"`
}

// AuditEntry is an entry of the audit log in lists.
type AuditEntry struct {
	At        time.Time `json:"atUtc"`
	Principal string    `json:"principal"`
	Name      string    `json:"name"`
	Action    string    `json:"action"`
	Target    string    `json:"target"`
	Outcome   string    `json:"outcome"`
}
