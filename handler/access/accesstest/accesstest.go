// Package accesstest makes the requests of callers, for tests, as the platform and the host pass them on. It owns no
// storage keys.
package accesstest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/handler/access"
)

// Caller is an authenticated caller. Tenant and Object may be any words, which ID converts to ids; "" is left out.
type Caller struct {
	Tenant, Object, Name string
	AppRoles, Groups     []string
	// Application says that it is an application.
	Application bool
}

// ID returns the id for a word, of a tenant, a user or a group.
func ID(word string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(word)).String() }

// ID returns the caller's id.
func (c Caller) ID() string { return ID(c.Tenant) + "/" + ID(c.Object) }

// Header returns the caller's identity in Easy Auth's X-MS-CLIENT-PRINCIPAL.
func (c Caller) Header() string {
	type claim struct {
		Type  string `json:"typ"`
		Value string `json:"val"`
	}
	var claims []claim
	for name, word := range map[string]string{"tid": c.Tenant, "oid": c.Object} {
		if word != "" {
			claims = append(claims, claim{name, ID(word)})
		}
	}
	if c.Application {
		claims = append(claims, claim{"idtyp", "app"}, claim{"appid", ID("application " + c.Object)})
	} else {
		claims = append(claims, claim{"preferred_username", c.Name}, claim{"scp", "user_impersonation"})
	}
	for _, role := range c.AppRoles {
		claims = append(claims, claim{"roles", role})
	}
	for _, group := range c.Groups {
		claims = append(claims, claim{"groups", ID(group)})
	}
	text, err := json.Marshal(map[string]any{"auth_typ": "aad", "name_typ": "name", "role_typ": "roles", "claims": claims})
	if err != nil {
		panic(err) // strings always marshal
	}
	return base64.StdEncoding.EncodeToString(text)
}

// Sign adds the caller to a request.
func (c Caller) Sign(r *http.Request) { r.Header.Set("X-MS-CLIENT-PRINCIPAL", c.Header()) }

// Machine returns a request as it arrives at the address for machines, where the host has checked a key.
func Machine(r *http.Request) *http.Request {
	const api = "/api/"
	out := r.Clone(r.Context())
	for _, path := range []*string{&out.URL.Path, &out.URL.RawPath} {
		if len(*path) >= len(api) && strings.EqualFold((*path)[:len(api)], api) {
			*path = access.MachinePrefix + (*path)[len(api):]
		}
	}
	return access.Machine(out)
}
