package hmac

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// Bounds of a message's fields, in bytes.
const (
	maxInput  = 8 << 10 // the input document
	maxID     = 512     // an id or a slot; an instance id also when escaped: the size of a key
	maxLabel  = 128     // an id or a slot as tag and as part of a key
	maxTenant = 128     // a tenant id: the limit of events
)

// Input is the engine-specific part of a message, read and checked.
type Input struct {
	// Operation is OperationRotate or OperationNotify.
	Operation string
	// Slot is that of RotateInput; "" leaves it to the caller. Rotate only.
	Slot string
	// Version is the version to notify of. Notify only, and required there.
	Version string
	// SecretName is the announced secret, that of the instance unless the message names another. Notify only.
	SecretName string
}

// inputDocument is the input document of a message.
type inputDocument struct {
	Slot       string `json:"slot"`
	Version    string `json:"version"`
	SecretName string `json:"secretName"`
}

// inputSchema is the schema of inputDocument, for forms.
const inputSchema = `{"type": "object", "additionalProperties": false, "properties": {
	"slot": {"type": "string", "title": "Slot", "description": "Rotate only: one rotation is made for a slot. The correlation id, unless given.", "maxLength": 120},
	"version": {"type": "string", "title": "Version", "description": "Notify only, and needed there: the version to notify of.", "maxLength": 120},
	"secretName": {"type": "string", "title": "Secret", "description": "Notify only: that of the instance, unless given.", "maxLength": 120}}}`

// ParseInput reads the operation ("" means rotate), the instance and the input document of an engine message. The
// document is a JSON object {slot?} for rotate and {version, secretName?} for notify, or absent; anything else,
// unknown fields included, is an ErrInput, which no retry can fix.
func ParseInput(operation, instanceID string, document []byte) (Input, error) {
	in, err := parseInput(operation, instanceID, document)
	if err != nil {
		return Input{}, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return in, nil
}

func parseInput(operation, instanceID string, document []byte) (Input, error) {
	if err := checkInstance(instanceID); err != nil {
		return Input{}, err
	}
	doc, err := decodeDocument(document)
	if err != nil {
		return Input{}, err
	}
	in := Input{Operation: operation, Slot: doc.Slot, Version: doc.Version, SecretName: doc.SecretName}
	switch operation {
	case "", OperationRotate:
		in.Operation = OperationRotate
		if doc.Version != "" || doc.SecretName != "" {
			return Input{}, errors.New("rotate takes a slot only; version and secretName belong to notify")
		}
		if doc.Slot == "" {
			return in, nil
		}
		return in, checkText("slot", doc.Slot)
	case OperationNotify:
		if doc.Slot != "" {
			return Input{}, errors.New("notify takes version and secretName only; a slot belongs to rotate")
		}
		if doc.SecretName == "" {
			in.SecretName = secrets.Name(Engine, instanceID)
		}
		return in, checkKeyVersion(in.SecretName, in.Version)
	default:
		return Input{}, fmt.Errorf("unknown operation %.64q; the engine knows %s and %s", operation, OperationRotate, OperationNotify)
	}
}

// decodeDocument decodes strictly; an absent document is an empty one.
func decodeDocument(document []byte) (inputDocument, error) {
	var doc inputDocument
	document = bytes.TrimSpace(document)
	if len(document) == 0 || bytes.Equal(document, []byte("null")) {
		return doc, nil
	}
	if len(document) > maxInput {
		return doc, fmt.Errorf("input has %d bytes, allowed are %d", len(document), maxInput)
	}
	// The decoder would replace invalid bytes, and two different texts would be one slot.
	if !utf8.Valid(document) {
		return doc, errors.New("input is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		return doc, fmt.Errorf("input: %w", payload.Explain(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return doc, errors.New("input: more than one JSON value")
	}
	return doc, nil
}

// validate checks input from a message or another step.
func (in RotateInput) validate() error {
	err := errors.Join(checkInstance(in.InstanceID), checkTenant(in.TenantID), checkText("slot", in.Slot), checkText("jobId", in.JobID))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// validate checks input from a message or another step.
func (in NotifyInput) validate() error {
	err := errors.Join(checkInstance(in.InstanceID), checkTenant(in.TenantID), checkKeyVersion(in.SecretName, in.Version))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// validate checks input from another step.
func (in RetireInput) validate() error {
	if err := errors.Join(checkInstance(in.InstanceID), checkKeyVersion(in.SecretName, in.Version)); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// checkInstance checks an instance id, which becomes a partition key.
func checkInstance(id string) error {
	if err := checkText("instanceId", id); err != nil {
		return err
	}
	if escaped := len(tables.EscapeKey(id)); escaped > maxID {
		return fmt.Errorf("instanceId has %d bytes as a key, allowed are %d", escaped, maxID)
	}
	return nil
}

// checkTenant checks a tenant id, which may be absent. Rotate refuses tenants that Notify could not publish.
func checkTenant(id string) error {
	if len(id) > maxTenant {
		return fmt.Errorf("tenantId has %d bytes, allowed are %d", len(id), maxTenant)
	}
	return checkOptional("tenantId", id)
}

// checkText checks a required text.
func checkText(field, text string) error {
	if text == "" {
		return fmt.Errorf("%s is missing", field)
	}
	return checkOptional(field, text)
}

// checkOptional checks a text that may be absent.
func checkOptional(field, text string) error {
	if len(text) > maxID {
		return fmt.Errorf("%s has %d bytes, allowed are %d", field, len(text), maxID)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s is not UTF-8", field)
	}
	return nil
}

// checkKeyVersion checks the name of a secret and of its version.
func checkKeyVersion(secretName, version string) error {
	if !secrets.ValidName(secretName) {
		return fmt.Errorf("secretName must be 1 to %d letters, digits and dashes", secrets.MaxName)
	}
	if !secrets.ValidVersion(version) {
		return errors.New("version must be 32 lower-case hex digits")
	}
	return nil
}

const hashedLabel = "sha256:"

// label converts an external text to a tag and a part of a key: the text itself if it is short printable ASCII, else
// its hash. Different texts have different labels.
func label(text string) string {
	if len(text) <= maxLabel && !strings.HasPrefix(text, hashedLabel) && strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hashedLabel + hex.EncodeToString(sum[:])
}

// unprintable reports whether r is not printable ASCII.
func unprintable(r rune) bool { return r < ' ' || r > '~' }
