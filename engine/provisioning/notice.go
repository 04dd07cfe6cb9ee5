package provisioning

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// The sources of notices.
const (
	SourceMarketplace = "marketplace"
	SourceManagedApp  = "managed-app"
)

// Notice is the claim of a message. It is not trusted before Receive has checked it.
type Notice struct {
	// Source is SourceMarketplace or SourceManagedApp.
	Source string `json:"source"`
	// Action is the marketplace's action ("ChangePlan"), or the event and the state of an application ("PUT
	// Succeeded").
	Action Action `json:"action"`
	// SubscriptionID is a UUID of the marketplace. OperationID is an id of the marketplace, which usually is a UUID;
	// one form of its notices lacks it.
	SubscriptionID string `json:"subscriptionId,omitempty"`
	OperationID    string `json:"operationId,omitempty"`
	// ApplicationID is the ARM id of a managed application, in lower case, with a slash at the beginning.
	ApplicationID string `json:"applicationId,omitempty"`
	// At is the time of the event, UTC; zero when the notice has none.
	At time.Time `json:"at,omitzero"`
}

// InstanceID returns the instance of the notice.
func (n Notice) InstanceID() string {
	if n.Source == SourceManagedApp {
		return n.ApplicationID
	}
	return n.SubscriptionID
}

// correlationID returns the same id for every delivery of a notice; "" when it cannot be distinguished from the next
// one.
func (n Notice) correlationID() string {
	at := n.At.Format(time.RFC3339Nano)
	switch {
	case n.Source == SourceManagedApp:
		return engine.DeriveCorrelationID("managed-app-notification", n.ApplicationID, string(n.Action), at)
	case n.OperationID != "":
		return engine.DeriveCorrelationID("marketplace-operation", n.OperationID)
	case !n.At.IsZero():
		return engine.DeriveCorrelationID("marketplace-notice", n.SubscriptionID, string(n.Action), at)
	default:
		return ""
	}
}

// document holds the fields that this program reads of both senders' bodies. Other fields, including personal data,
// are dropped when it is written again.
type document struct {
	ID             optional `json:"id,omitempty"`
	SubscriptionID string   `json:"subscriptionId,omitempty"`
	Action         string   `json:"action,omitempty"`
	OperationType  string   `json:"operationType,omitempty"`
	TimeStamp      optional `json:"timeStamp,omitempty"`

	ApplicationID     string   `json:"applicationId,omitempty"`
	EventType         string   `json:"eventType,omitempty"`
	ProvisioningState string   `json:"provisioningState,omitempty"`
	EventTime         optional `json:"eventTime,omitempty"`
}

// optional is an optional text: a value of another type is "".
type optional string

// UnmarshalJSON implements json.Unmarshaler.
func (o *optional) UnmarshalJSON(data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	text, _ := value.(string)
	*o = optional(text)
	return nil
}

// Adapt converts the body of a marketplace webhook or of a managed application's notification to a message: the hook
// engine.Definition.Adapt. ok is false for everything else, the envelope included.
func Adapt(body []byte) (m engine.Message, ok bool, err error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil || (!d.fromMarketplace() && !d.fromManagedApp()) {
		return engine.Message{}, false, nil
	}
	n, err := d.notice()
	if err != nil {
		return engine.Message{}, true, err
	}
	input, err := json.Marshal(d)
	if err != nil {
		return engine.Message{}, true, err
	}
	return engine.Message{CorrelationID: n.correlationID(), Engine: Engine, Operation: OperationReceived, InstanceID: n.InstanceID(), Input: input}, true, nil
}

// AdaptWebhook is Adapt for webhooks of the marketplace alone, and AdaptNotification for notifications of managed
// applications: their senders have different permissions. An ambiguous body is neither.
func AdaptWebhook(body []byte) (engine.Message, bool, error) {
	return adaptOf(body, document.fromMarketplace, document.fromManagedApp)
}

// AdaptNotification is Adapt for notifications of managed applications (see AdaptWebhook).
func AdaptNotification(body []byte) (engine.Message, bool, error) {
	return adaptOf(body, document.fromManagedApp, document.fromMarketplace)
}

func adaptOf(body []byte, own, other func(document) bool) (engine.Message, bool, error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil || !own(d) || other(d) {
		return engine.Message{}, false, nil
	}
	return Adapt(body)
}

func (d document) fromMarketplace() bool {
	return d.SubscriptionID != "" && (d.Action != "" || d.OperationType != "")
}

func (d document) fromManagedApp() bool { return d.ApplicationID != "" && d.EventType != "" }

// ParseNotice reads the input of a message: the body of either sender. Anything else is an ErrNotice.
func ParseNotice(input []byte) (Notice, error) {
	var d document
	if err := json.Unmarshal(input, &d); err != nil {
		return Notice{}, fmt.Errorf("%w: %w", ErrNotice, payload.Explain(err))
	}
	return d.notice()
}

func (d document) notice() (Notice, error) {
	n, err := Notice{}, errors.New("it has neither subscriptionId and action nor applicationId and eventType")
	switch {
	case d.fromMarketplace():
		n, err = d.webhook()
	case d.fromManagedApp():
		n, err = d.notification()
	}
	if err == nil {
		_, err = ruleOf(n.Action)
	}
	if err != nil {
		return Notice{}, fmt.Errorf("%w: %w", ErrNotice, err)
	}
	return n, nil
}

func (d document) webhook() (Notice, error) {
	subscription, err := uuid.Parse(strings.TrimSpace(d.SubscriptionID))
	if err != nil {
		return Notice{}, fmt.Errorf("subscriptionId: %w", err)
	}
	n := Notice{Source: SourceMarketplace, SubscriptionID: subscription.String(), Action: Action(d.Action), At: marketplace.ParseTime(string(d.TimeStamp))}
	if n.Action == "" {
		n.Action = Action(d.OperationType)
	}
	n.OperationID = operationIDOf(string(d.ID))
	return n, nil
}

// operationIDOf reads the id of an operation: a UUID in any spelling, or up to 128 letters, digits and -._~: of
// ASCII. Another text names no operation; the notice is still valid, since the marketplace is asked about it.
func operationIDOf(text string) string {
	text = strings.TrimSpace(text)
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	if operationID.MatchString(text) {
		return text
	}
	return ""
}

var operationID = regexp.MustCompile(`^[0-9A-Za-z_~:-][0-9A-Za-z._~:-]{0,127}$`)

// applicationID matches the ARM id of a managed application, in lower case. It becomes part of an address, so other
// characters are rejected.
var applicationID = regexp.MustCompile(`^/subscriptions/[0-9a-f-]{36}/resourcegroups/[\pL\pN_()-][\pL\pN._()-]{0,89}/providers/microsoft\.solutions/applications/[\pL\pN_()-][\pL\pN._()-]{0,89}$`)

func (d document) notification() (Notice, error) {
	id := "/" + strings.ToLower(strings.TrimPrefix(d.ApplicationID, "/"))
	if !applicationID.MatchString(id) || len(id) > engine.MaxInstanceIDLength {
		return Notice{}, errors.New("applicationId is not that of a managed application")
	}
	at := marketplace.ParseTime(string(d.EventTime))
	if at.IsZero() {
		return Notice{}, errors.New("eventTime is missing, or no time")
	}
	return Notice{Source: SourceManagedApp, ApplicationID: id, Action: Action(d.EventType + " " + d.ProvisioningState), At: at}, nil
}
