package client

import (
	"encoding/json"
	"time"
)

// Page is a page of a list; Token continues it, "" on the last page. Items are as the API gives them.
type Page struct {
	Items []json.RawMessage `json:"items"`
	Token string            `json:"continuationToken,omitempty"`
}

// HistoryItem is an entry of the history as lists show it.
type HistoryItem struct {
	Engine        string    `json:"engine"`
	RowKey        string    `json:"rowKey"`
	InstanceID    string    `json:"instanceId"`
	Operation     string    `json:"operation"`
	Status        string    `json:"status"`
	DurationMs    int64     `json:"durationMs"`
	CreatedAt     time.Time `json:"createdAtUtc"`
	CorrelationID string    `json:"correlationId"`
	// SupersededBy is the entry with which the run succeeded after all, "" for none.
	SupersededBy string `json:"supersededBy"`
}

// DeadLetterItem is a dead letter as lists show it.
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

// DeadLetterDetail is what is looked at of a dead letter that is sent again.
type DeadLetterDetail struct {
	DeadLetterItem
	DetectedReason string `json:"detectedReason"`
}

// DeadLetterMessage is what is looked at of a dead letter whose message is edited.
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

// DeadLetterGroups are the groups of the newest dead letters; Complete says that these were all.
type DeadLetterGroups struct {
	Items    []DeadLetterGroup `json:"items"`
	Examined int               `json:"examined"`
	Complete bool              `json:"complete"`
}

// DeadLetterCount is how many dead letters an engine has.
type DeadLetterCount struct {
	Engine   string `json:"engine"`
	Pending  int    `json:"pending"`
	Resolved int    `json:"resolved"`
	Expired  int    `json:"expired"`
}

// OrchestrationItem is an orchestration as lists show it.
type OrchestrationItem struct {
	ID           string    `json:"id"`
	Orchestrator string    `json:"orchestrator"`
	ParentID     string    `json:"parentId"`
	Status       string    `json:"status"`
	Execution    int       `json:"execution"`
	WaitingFor   string    `json:"waitingFor"`
	WaitingUntil time.Time `json:"waitingUntilUtc"`
	Late         bool      `json:"late"` // that time is over
	CreatedAt    time.Time `json:"createdAtUtc"`
	UpdatedAt    time.Time `json:"updatedAtUtc"`
	EndedAt      time.Time `json:"endedAtUtc"`
	ErrorCode    string    `json:"errorCode"`
}

// OrchestrationDetail is what is looked at first of an orchestration that is shown. StatusSince is for one that is Retrying
// or Stalled.
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

// OrchestrationChange is how the state of an orchestration changed.
type OrchestrationChange struct {
	OrchestrationID string   `json:"orchestrationId"`
	Attempt         int      `json:"attempt"`
	What            string   `json:"what"`
	Reason          string   `json:"reason"`
	Error           *Failure `json:"error"`
}

// TaskItem is a human task as lists show it.
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

// InstanceItem is an instance of the registry as lists show it.
type InstanceItem struct {
	InstanceID string       `json:"instanceId"`
	TenantID   string       `json:"tenantId"`
	Ring       string       `json:"ring"`
	Version    string       `json:"version"`
	Lock       InstanceLock `json:"lock"`
	Damaged    string       `json:"damaged"`
}

// InstanceLock says who may change an instance at present.
type InstanceLock struct {
	Held      bool      `json:"held"`
	JobID     string    `json:"jobId"`
	Until     time.Time `json:"untilUtc"`
	DrainedBy string    `json:"drainedBy"`
}

// ScheduleItem is an item of a schedule as lists show it.
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

// NodeItem is a process that runs the app, as lists show it.
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

// OutboxItem is a message of the outbox as lists show it.
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

// Operation is work on many things at a time.
type Operation struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	// Request says what it was asked for.
	Request struct {
		Action string `json:"action"`
		By     string `json:"by"`
	} `json:"request"`
	Progress  Progress  `json:"progress"`
	CreatedAt time.Time `json:"createdAt"`
	Error     *Error    `json:"error"`
}

// Progress is how far an operation is: rows that were changed, rows that could not be, rows of the canary that came back.
type Progress struct {
	Done       int `json:"done"`
	PassedOver int `json:"passedOver"`
	Returned   int `json:"returned"`
}

// Ended says whether nothing more will happen.
func (o Operation) Ended() bool {
	return o.Status != "NotStarted" && o.Status != "Running" && o.Status != "Paused"
}

// Health is the report of a health endpoint, in the form of the draft for application/health+json.
type Health struct {
	Status    string                   `json:"status"`
	ReleaseID string                   `json:"releaseId"`
	Checks    map[string][]HealthCheck `json:"checks"`
}

// HealthCheck is one of its checks.
type HealthCheck struct {
	Status        string          `json:"status"`
	Output        string          `json:"output"`
	ObservedValue json.RawMessage `json:"observedValue"`
	ObservedUnit  string          `json:"observedUnit"`
}

// Me is who the caller is to the API.
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

// AuditEntry is one thing that somebody did, as lists show it.
type AuditEntry struct {
	At        time.Time `json:"atUtc"`
	Principal string    `json:"principal"`
	Name      string    `json:"name"`
	Action    string    `json:"action"`
	Target    string    `json:"target"`
	Outcome   string    `json:"outcome"`
}
