package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"strings"
)

// The reasons why a caller is not authenticated.
var (
	// ErrUnauthenticated: the caller has no credentials.
	ErrUnauthenticated = errors.New("nobody is signed in")
	// ErrForbidden: the caller's credentials are not accepted here.
	ErrForbidden = errors.New("access is refused")
	// ErrNotConfigured: the app has no sign-in.
	ErrNotConfigured = errors.New("the app does not let people sign in")
)

// Control authenticates callers. Its zero value admits only machines with keys.
type Control struct {
	// Policy assigns the roles.
	Policy Policy
	// EasyAuth means that the platform authenticates callers (its setting WEBSITE_AUTH_ENABLED) and identifies them
	// in a header. The header is trusted only then: elsewhere any caller can write it.
	EasyAuth bool
	// Development means that the host runs on a developer's machine, without sign-in.
	Development bool
	// LocalKey is the key that the local host has printed for its user; with Development only. "" requires none.
	LocalKey string
	// Fixed, if it is set, is the caller of every request: for programs that answer themselves.
	Fixed *Principal
}

// Validate returns all errors of the configuration.
func (c Control) Validate() error {
	errs := []error{c.Policy.Validate()}
	if c.EasyAuth && c.Development {
		errs = append(errs, errors.New("WEBSITE_AUTH_ENABLED is set on a developer's machine, where anybody can write its header"))
	}
	if c.LocalKey != "" && !c.Development {
		errs = append(errs, errors.New("a local key is for a developer's machine only"))
	}
	return errors.Join(errs...)
}

// Principal returns the caller of a request. The error is ErrUnauthenticated, ErrForbidden or ErrNotConfigured, with
// a sentence for the caller.
func (c Control) Principal(r *http.Request) (Principal, error) {
	header := r.Header.Get(principalHeader)
	switch {
	case c.Fixed != nil:
		return *c.Fixed, nil
	case c.Development:
		return c.local(r)
	case c.EasyAuth && header != "":
		if crossSite(r) {
			return Principal{}, fmt.Errorf("%w: the request comes from a page of another site", ErrForbidden)
		}
		return c.signedIn(header)
	case FromMachine(r.Context()):
		return c.Policy.keyHolder(c.EasyAuth), nil
	case c.EasyAuth:
		return Principal{}, fmt.Errorf("%w: sign in, or send a token of Microsoft Entra ID; a function key opens the addresses below %s", ErrUnauthenticated, MachinePrefix)
	default:
		return Principal{}, fmt.Errorf("%w: turn on its authentication (Easy Auth) with Microsoft Entra ID, or use the addresses below %s with a function key",
			ErrNotConfigured, MachinePrefix)
	}
}

// signedIn returns the caller that the platform has authenticated. An unreadable token makes the caller anonymous.
// Falling back to the function key would grant that key's rights.
func (c Control) signedIn(header string) (Principal, error) {
	t, err := readToken(header)
	if err != nil {
		return Principal{}, fmt.Errorf("%w: the platform does not say who you are in a way that can be read: %w", ErrForbidden, err)
	}
	who, err := t.principal()
	if err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return c.Policy.admit(who, t), nil
}

// local returns the user of a developer's machine. Web pages in the user's browser can send requests, too: they have
// another host name, or another origin.
func (c Control) local(r *http.Request) (Principal, error) {
	if err := fromHere(r); err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if c.LocalKey != "" && !c.IsLocalKey(givenKey(r)) {
		return Principal{}, fmt.Errorf("%w: send the key that the local host has printed, as the header x-functions-key", ErrUnauthenticated)
	}
	name := "user"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return LocalUser(name), nil
}

// IsLocalKey reports whether a text is the key of the local host. Without a key, no text is.
func (c Control) IsLocalKey(text string) bool {
	return c.Development && c.LocalKey != "" && sameKey(text, c.LocalKey)
}

// givenKey returns the function key of a request.
func givenKey(r *http.Request) string {
	if key := r.Header.Get("x-functions-key"); key != "" {
		return key
	}
	return r.URL.Query().Get("code")
}

// sameKey compares in constant time, the length included.
func sameKey(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// MachinePrefix is the prefix of the addresses that the host opens with a function key. The rest of the path is that
// of the addresses for users.
const MachinePrefix = "/api/machine/"

type machineKey struct{}

// FromMachine reports whether a request came to an address for machines, whose key the host has checked.
func FromMachine(ctx context.Context) bool { return ctx.Value(machineKey{}) != nil }

// Machine marks a request to an address for machines, and removes the prefix from its path, which is changed in
// place: the router of echo uses the original request.
func Machine(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	if len(path) < len(MachinePrefix) || !strings.EqualFold(path[:len(MachinePrefix)], MachinePrefix) {
		return r
	}
	escaped := "/api/" + path[len(MachinePrefix):]
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		return r // unreachable unless EscapedPath returns an undecodable path
	}
	r.URL.Path, r.URL.RawPath = plain, escaped
	return r.WithContext(context.WithValue(r.Context(), machineKey{}, true))
}
