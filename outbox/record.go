package outbox

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Status is the status of a message.
type Status string

// The statuses of a message.
const (
	StatusPending   Status = "pending"   // not delivered yet
	StatusProcessed Status = "processed" // delivered
	StatusDead      Status = "dead"      // abandoned after MaxRetries, or immediately; an operator may retry or skip it
	StatusSkipped   Status = "skipped"   // not delivered, by an operator's decision
)

// Record is a message as lists and Get return it (outbox document, "Target Schema"). A zero time is not set.
type Record struct {
	ID        string `json:"id"`
	TenantID  string `json:"tenantId"`
	EventType string `json:"eventType"`
	// IdempotencyKey is the zero UUID for a row from before idempotency keys.
	IdempotencyKey uuid.UUID `json:"idempotencyKey"`
	Status         Status    `json:"status"`
	CreatedAt      time.Time `json:"createdAt"`
	// RetryCount counts the failures.
	RetryCount int `json:"retryCount"`
	// IsProcessed is true for an ended message: processed or skipped.
	IsProcessed bool `json:"isProcessed"`
	// ProcessedAt is when it was delivered or skipped.
	ProcessedAt   time.Time `json:"processedAt,omitzero"`
	NextAttemptAt time.Time `json:"nextAttemptAt,omitzero"`
	DeadAt        time.Time `json:"deadAt,omitzero"`
	// RevivedAt is when an operator last restarted it.
	RevivedAt time.Time `json:"revivedAt,omitzero"`
	// WaitsSince is the start of its wait for a configuration with which it can be sent; ReportedAt is when it got a dead
	// letter for that.
	WaitsSince time.Time `json:"waitsSince,omitzero"`
	ReportedAt time.Time `json:"reportedAt,omitzero"`
	// DeadLetter is the name that Letters gave its latest dead letter.
	DeadLetter string `json:"deadLetter,omitempty"`
	// Error is the text of the last failure; "" after success. Lists show its first 256 characters.
	Error string `json:"error,omitempty"`
	// Destination is the destination of the last attempt.
	Destination   string `json:"destination,omitempty"`
	OrderKey      string `json:"orderKey,omitempty"`
	CorrelationID string `json:"correlationId,omitempty"`
	TraceParent   string `json:"traceParent,omitempty"`
	// SkippedBy is the operator who skipped it.
	SkippedBy string `json:"skippedBy,omitempty"`
	// ClaimedBy and ClaimedUntil are set while a dispatcher delivers it; only lists have them.
	ClaimedBy    string    `json:"claimedBy,omitempty"`
	ClaimedUntil time.Time `json:"claimedUntil,omitzero"`
	// PayloadHash is the SHA-256 of the compacted payload in hexadecimal, PayloadSize its length in bytes as given.
	PayloadHash   string `json:"payloadHash,omitempty"`
	PayloadSize   int64  `json:"payloadSize"`
	SchemaVersion int    `json:"schemaVersion"`
	// Payload and Attempts, the latest 10 of them, are set by Get only.
	Payload  json.RawMessage `json:"payload,omitempty"`
	Attempts []Attempt       `json:"attempts,omitempty"`
}

// Attempt is one attempt to deliver a message.
type Attempt struct {
	At time.Time `json:"at"`
	// Node is the node of the dispatcher that tried.
	Node        string `json:"node,omitempty"`
	Destination string `json:"destination,omitempty"`
	// TookMilliseconds is how long it took.
	TookMilliseconds int64 `json:"tookMs"`
	// Status is the status code from the destination, 0 without one.
	Status int `json:"status,omitempty"`
	// SentAs is how the destination identified the sender, as its transport reported with NoteSent: by a token, a
	// signature or a certificate; "" without a report. It is cut like Error.
	SentAs string `json:"sentAs,omitempty"`
	// Error is "" for the attempt that succeeded, and cut at 256 characters.
	Error string `json:"error,omitempty"`
}
