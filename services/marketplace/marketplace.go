// Package marketplace is the client of the Azure commercial marketplace (SaaS fulfilment API, version 2018-08-31) and
// of Azure Resource Manager for managed applications. It reads operations, subscriptions and applications, acknowledges
// operations and activates subscriptions.
//
// Every failure is one of the sentinel errors. A request that the service may not have received is sent again, up to
// three times: all of them may be repeated. The package stores nothing and owns no storage keys.
package marketplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Test for these errors with errors.Is. Their text has the service's text, shortened.
var (
	// ErrNotFound means that the operation, subscription or application does not exist, or is invisible to this publisher.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the operation is concluded already, either way.
	ErrConflict = errors.New("already concluded")
	// ErrInvalid means that the service rejects the request. Do not retry.
	ErrInvalid = errors.New("refused as invalid")
	// ErrDenied means that the service refuses the identity.
	ErrDenied = errors.New("denied")
	// ErrUnavailable means that the service is busy, or gave no answer. Retry later.
	ErrUnavailable = errors.New("unavailable")
)

// OperationStatus is the status of an operation of the marketplace.
type OperationStatus string

// The states of an operation.
const (
	OperationNotStarted OperationStatus = "NotStarted"
	OperationInProgress OperationStatus = "InProgress"
	OperationSucceeded  OperationStatus = "Succeeded"
	OperationFailed     OperationStatus = "Failed"
	OperationConflict   OperationStatus = "Conflict"
)

// SubscriptionStatus is the status of a SaaS subscription.
type SubscriptionStatus string

// The states of a subscription.
const (
	NotStarted              SubscriptionStatus = "NotStarted"
	PendingFulfillmentStart SubscriptionStatus = "PendingFulfillmentStart"
	Subscribed              SubscriptionStatus = "Subscribed"
	Suspended               SubscriptionStatus = "Suspended"
	Unsubscribed            SubscriptionStatus = "Unsubscribed"
)

// Operation is a change of a subscription that the marketplace announces.
type Operation struct {
	ID             string   `json:"id"`
	SubscriptionID string   `json:"subscriptionId"`
	OfferID        string   `json:"offerId"`
	PlanID         string   `json:"planId"`
	Quantity       Quantity `json:"quantity"`
	Action         string   `json:"action"`
	// TimeStamp is as ParseTime reads it; zero when the answer has no readable time.
	TimeStamp time.Time       `json:"timeStamp"`
	Status    OperationStatus `json:"status"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable time does not make the operation unreadable.
func (o *Operation) UnmarshalJSON(data []byte) error {
	type operation Operation
	in := struct {
		*operation
		TimeStamp any `json:"timeStamp"`
	}{operation: (*operation)(o)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	text, _ := in.TimeStamp.(string)
	o.TimeStamp = ParseTime(text)
	return nil
}

// ParseTime reads a time as the marketplace and managed applications write it, and returns it in UTC to the
// microsecond:
//
//   - date and time with "T" or a blank in between, with or without seconds and a fraction of any length;
//   - with the offset "Z" or "±hh:mm", or without one, which then is UTC;
//   - a date alone.
//
// Any other text, and years before 2000 or after 2999 such as .NET's smallest time, are the zero time: it is unknown.
func ParseTime(text string) time.Time {
	text = strings.ToUpper(strings.TrimSpace(text))
	if len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == ' ' {
		text = text[:len(time.DateOnly)] + "T" + strings.TrimLeft(text[len(time.DateOnly):], " ")
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		for _, zone := range []string{"Z07:00", " Z07:00", ""} {
			if t, err := time.Parse(layout+zone, text); err == nil {
				if t = t.UTC().Truncate(time.Microsecond); t.Year() < 2000 || t.Year() > 2999 {
					return time.Time{}
				}
				return t
			}
		}
	}
	return time.Time{}
}

// Subscription is a customer's SaaS subscription.
type Subscription struct {
	ID          string             `json:"id"`
	OfferID     string             `json:"offerId"`
	PlanID      string             `json:"planId"`
	Quantity    Quantity           `json:"quantity"`
	Beneficiary Party              `json:"beneficiary"`
	Status      SubscriptionStatus `json:"saasSubscriptionStatus"`
}

// Party is the user of a subscription.
type Party struct {
	TenantID string `json:"tenantId"`
}

// Application is a managed application.
type Application struct {
	ID       string `json:"id"`
	Identity struct {
		TenantID string `json:"tenantId"`
	} `json:"identity"`
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
	} `json:"properties"`
}

// Acknowledgement is the publisher's answer to an operation.
type Acknowledgement struct {
	PlanID   string   `json:"planId,omitempty"`
	Quantity Quantity `json:"quantity,omitempty"`
	// Status is Success or Failure.
	Status string `json:"status"`
}

// The answers to an operation.
const (
	Success = "Success"
	Failure = "Failure"
)

// Quantity is a number of seats as decimal digits; "" for none. The marketplace writes it as a number, as text or as
// null.
type Quantity string

// UnmarshalJSON implements json.Unmarshaler.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) == nil {
		*q = ""
		if text != nil {
			*q = Quantity(*text)
		}
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return fmt.Errorf("a quantity is a number, a text or null: %w", err)
	}
	*q = Quantity(number)
	return nil
}

// MarshalJSON implements json.Marshaler: a number where it is one, as the API has it.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q == "" {
		return []byte("null"), nil
	}
	if n := json.Number(q); json.Valid([]byte(q)) {
		return json.Marshal(n)
	}
	return json.Marshal(string(q))
}
