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

// The reasons for which it is not told who calls.
var (
	// ErrUnauthenticated: the caller has not said who he is.
	ErrUnauthenticated = errors.New("nobody is signed in")
	// ErrForbidden: what the caller has brought cannot be used here.
	ErrForbidden = errors.New("access is refused")
	// ErrNotConfigured: nobody can sign in to the app.
	ErrNotConfigured = errors.New("the app does not let people sign in")
)

// Control tells who calls. Its zero value lets in machines with keys alone.
type Control struct {
	// Policy says who has which role.
	Policy Policy
	// EasyAuth says that the platform authenticates callers (its setting WEBSITE_AUTH_ENABLED) and tells in a header who they
	// are. Only then the header is believed: elsewhere anybody can write it.
	EasyAuth bool
	// Development says that the host runs on a developer's machine, where nobody signs in.
	Development bool
	// LocalKey is what the local host has printed for its user; with Development only. "" asks for none.
	LocalKey string
	// Fixed, if it is set, is who calls, whatever the request says: for programs that answer themselves.
	Fixed *Principal
}

// Validate reports what is wrong with the configuration.
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

// Principal is who sends a request. The error is ErrUnauthenticated, ErrForbidden or ErrNotConfigured, with a sentence for
// the caller.
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

// signedIn is whom the platform has authenticated. One who cannot be told is nobody: to take him for the holder of the key
// that came beside would let him do more than he may.
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

// local is the user of a developer's machine. Web pages that the user looks at can send requests, too: they come with the
// name of another host, or from another origin.
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

// IsLocalKey says whether a text is the key of the local host. Without one, none is.
func (c Control) IsLocalKey(text string) bool {
	return c.Development && c.LocalKey != "" && sameKey(text, c.LocalKey)
}

// givenKey is the function key of a request.
func givenKey(r *http.Request) string {
	if key := r.Header.Get("x-functions-key"); key != "" {
		return key
	}
	return r.URL.Query().Get("code")
}

// sameKey compares in a time that tells nothing, the length included.
func sameKey(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// MachinePrefix begins the addresses that the host opens with a function key. Behind it, they are those that people use.
const MachinePrefix = "/api/machine/"

type machineKey struct{}

// FromMachine says whether a request came to an address for machines, for which the host has asked for a key.
func FromMachine(ctx context.Context) bool { return ctx.Value(machineKey{}) != nil }

// Machine marks a request to an address for machines, and takes the mark out of its path, which is changed in place: the
// router of echo looks at the request that it was given.
func Machine(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	if len(path) < len(MachinePrefix) || !strings.EqualFold(path[:len(MachinePrefix)], MachinePrefix) {
		return r
	}
	escaped := "/api/" + path[len(MachinePrefix):]
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		return r // unreachable unless EscapedPath gives what cannot be decoded
	}
	r.URL.Path, r.URL.RawPath = plain, escaped
	return r.WithContext(context.WithValue(r.Context(), machineKey{}, true))
}
