package spn

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
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Bounds of a message's fields, in bytes.
const (
	maxInput = 8 << 10 // the input document
	maxID    = 512     // a slot or a job id
	maxLabel = 40      // a slot or a job id as a tag and as part of a display name
)

// Input is the engine-specific part of a message, read and checked.
type Input struct {
	// ApplicationID is the application (client) id, a UUID in lower case.
	ApplicationID string `json:"applicationId"`
	// Slot names the occurrence of the schedule; "" leaves it to the caller.
	Slot string `json:"slot"`
}

// inputSchema is the schema of Input, for forms.
const inputSchema = `{"type": "object", "required": ["applicationId"], "additionalProperties": false, "properties": {
	"applicationId": {"type": "string", "title": "Application", "description": "The application (client) id.", "maxLength": 36},
	"slot": {"type": "string", "title": "Slot", "description": "One rotation is made for a slot. The correlation id, unless given.", "maxLength": 120}}}`

// ParseInput reads the operation ("" means rotate) and the input document of an engine message, {applicationId,
// slot?}. Anything else, unknown fields included, is an ErrInput, which no retry can fix.
func ParseInput(operation string, document []byte) (Input, error) {
	var in Input
	err := decodeDocument(document, &in)
	if operation != "" && operation != OperationRotate {
		err = fmt.Errorf("unknown operation %.64q; the engine knows %s", operation, OperationRotate)
	}
	if err == nil {
		in.ApplicationID = strings.ToLower(in.ApplicationID)
		err = errors.Join(entra.CheckApplicationID(in.ApplicationID), checkText("slot", in.Slot, true))
	}
	if err != nil {
		return Input{}, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return in, nil
}

// decodeDocument decodes strictly.
func decodeDocument(document []byte, in *Input) error {
	if len(document) > maxInput {
		return fmt.Errorf("input has %d bytes, allowed are %d", len(document), maxInput)
	}
	// The decoder would replace invalid bytes, and two different texts would be one slot.
	if !utf8.Valid(document) {
		return errors.New("input is not UTF-8")
	}
	if len(bytes.TrimSpace(document)) == 0 {
		return errors.New("input is missing; it has to name an applicationId")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(in); err != nil {
		return fmt.Errorf("input: %w", payload.Explain(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("input: more than one JSON value")
	}
	return nil
}

func (in RotateInput) validate() error {
	return invalid(entra.CheckApplicationID(in.ApplicationID), checkText("slot", in.Slot, false), checkText("jobId", in.JobID, false))
}

func (in ProbeInput) validate() error {
	return invalid(entra.CheckApplicationID(in.ApplicationID), checkVersion(in.SecretName, in.Version))
}

func (in RetireInput) validate() error {
	return invalid(entra.CheckApplicationID(in.ApplicationID), checkText("slot", in.Slot, false), checkText("keyId", in.KeyID, false),
		checkVersion(in.SecretName, in.Version))
}

// invalid joins errors to an ErrInput; nil for none.
func invalid(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

func checkText(field, text string, optional bool) error {
	switch {
	case text == "" && !optional:
		return fmt.Errorf("%s is missing", field)
	case len(text) > maxID:
		return fmt.Errorf("%s has %d bytes, allowed are %d", field, len(text), maxID)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s is not UTF-8", field)
	}
	return nil
}

func checkVersion(secretName, version string) error {
	if !secrets.ValidName(secretName) || !secrets.ValidVersion(version) {
		return errors.New("secretName and version must be those of a secret version")
	}
	return nil
}

const hashedLabel = "sha256-"

// label converts an external text to a tag and a part of a display name: the text itself if it is short and
// printable, else its hash. Different texts have different labels.
func label(text string) string {
	if len(text) <= maxLabel && !strings.HasPrefix(text, hashedLabel) && strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hashedLabel + hex.EncodeToString(sum[:16])
}

// unprintable reports whether r is not printable ASCII.
func unprintable(r rune) bool { return r < ' ' || r > '~' }
