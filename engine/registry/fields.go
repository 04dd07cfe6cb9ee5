package registry

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
)

// The operators' fields of an instance, in addition to those of the package. Engines read them, and write others.
const (
	// FieldRing is the ring whose releases the instance gets.
	FieldRing = "ring"
	// FieldEndpoints are the addresses of the instance's own application (Endpoints).
	FieldEndpoints = "endpoints"
)

// Endpoints are the addresses of an instance's own application. The field may have other members, which the package leaves
// alone.
type Endpoints struct {
	// Events is the address for the instance's events: https, or http on this machine; "" when unknown.
	Events string `json:"events,omitempty"`
}

// Ring returns the ring of the instance, "" when the document has none. The error is ErrDamaged.
func (i Instance) Ring() (string, error) {
	var ring string
	if _, err := i.Field(FieldRing, &ring); err != nil {
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return ring, nil
}

// Endpoints returns the addresses of the instance, none when the document has none. The error is ErrDamaged.
func (i Instance) Endpoints() (Endpoints, error) {
	var e Endpoints
	if _, err := i.Field(FieldEndpoints, &e); err != nil {
		return Endpoints{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

// ring matches valid names of rings, as in the update-publisher engine.
var ring = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// maxEndpoint bounds an address, in bytes.
const maxEndpoint = 2 << 10

// checkRing returns the error in the field of a document.
func checkRing(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) != nil || !ring.MatchString(name) {
		return "Use the name of a ring: 1 to 64 letters, digits, and . _ + - behind the first."
	}
	return ""
}

// checkEndpoints returns the error in the field of a document. The caller of an address decides whether it may be
// called.
func checkEndpoints(raw json.RawMessage) string {
	var e Endpoints
	if json.Unmarshal(raw, &e) != nil {
		return `Use an object such as {"events": "https://app.example.org/api/updates"}.`
	}
	if e.Events == "" {
		return ""
	}
	u, err := url.Parse(e.Events)
	if err != nil || len(e.Events) > maxEndpoint || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && !onThisMachine(u) {
		return "Use an https address without a user and a fragment for events."
	}
	return ""
}

func onThisMachine(u *url.URL) bool {
	return u.Scheme == "http" && (u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1")
}
