package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/internal/entraid"
)

// principalHeader is the header with the caller's identity from the platform's Easy Auth; maxHeader bounds it in
// bytes. A token with 200 groups, the maximum, takes 20 KB.
const (
	principalHeader = "X-MS-CLIENT-PRINCIPAL"
	maxHeader       = 128 << 10
)

// The types of claims in Easy Auth: with the names of the token, or with those of WS-Federation.
var (
	tenantClaims = []string{"tid", "http://schemas.microsoft.com/identity/claims/tenantid"}
	objectClaims = []string{"oid", "http://schemas.microsoft.com/identity/claims/objectidentifier"}
	nameClaims   = []string{"preferred_username", "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn", "upn", "name"}
	appClaims    = []string{"appid", "azp"}
	scopeClaims  = []string{"scp", "http://schemas.microsoft.com/identity/claims/scope"}
	roleClaims   = []string{"roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"}
	groupClaims  = []string{"groups", "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups"}
	// overageClaims are present when a user has more groups than a token holds.
	overageClaims = []string{"hasgroups", "_claim_names"}
)

// entra is the platform's name of Microsoft Entra ID. Claims of other providers are not trusted.
const entra = "aad"

// issuers are the hosts of Microsoft Entra ID that issue tokens, of all clouds.
var issuers = []string{"login.microsoftonline.com", "sts.windows.net", "login.microsoftonline.us", "login.partner.microsoftonline.cn", "login.chinacloudapi.cn", "sts.chinacloudapi.cn"}

// token is the platform's description of a caller.
type token struct {
	// Provider is the identity provider that signed the caller in.
	Provider string `json:"auth_typ"`
	RoleType string `json:"role_typ"`
	Claims   []struct {
		Type  string `json:"typ"`
		Value string `json:"val"`
	} `json:"claims"`
}

// readToken reads the header of Easy Auth.
func readToken(header string) (token, error) {
	var t token
	if len(header) > maxHeader {
		return t, fmt.Errorf("the header %s has %d bytes, %d are read", principalHeader, len(header), maxHeader)
	}
	text, err := base64.StdEncoding.DecodeString(header)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, fmt.Errorf("the header %s cannot be read: %w", principalHeader, err)
	}
	return t, nil
}

// all returns the values of the claims of these types.
func (t token) all(types []string) (values []string) {
	for _, c := range t.Claims {
		if c.Value != "" && slices.Contains(types, c.Type) {
			values = append(values, c.Value)
		}
	}
	return values
}

// first returns the first value of the claims of these types, in their order; "" for none.
func (t token) first(types []string) string {
	for _, typ := range types {
		if values := t.all([]string{typ}); len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// principal returns the owner of the token, without roles. The error is for users, and names the missing claims.
func (t token) principal() (Principal, error) {
	if !strings.EqualFold(t.Provider, entra) || !t.issuedByEntra() {
		return Principal{}, fmt.Errorf("you are signed in by another identity provider (%.64q): sign in with Microsoft Entra ID", t.Provider)
	}
	tenant, tenantErr := entraid.Parse(t.first(tenantClaims))
	object, objectErr := entraid.Parse(t.first(objectClaims))
	if tenantErr != nil || objectErr != nil {
		return Principal{}, fmt.Errorf("your token names no tenant and object: sign in with Microsoft Entra ID, whose tokens have the claims tid and oid")
	}
	roles := roleClaims
	if t.RoleType != "" {
		roles = append([]string{t.RoleType}, roles...)
	}
	p := Principal{Kind: Person, TenantID: tenant, ObjectID: object, AppRoles: t.all(roles), Overage: t.overage()}
	name := t.first(nameClaims)
	if t.application() {
		p.Kind, name = Application, t.first(appClaims)
	}
	if p.Name = readable(name); p.Name == "" {
		p.Name = p.ObjectID
	}
	return p, nil
}

// issuedByEntra reports whether the token's issuers are Microsoft Entra ID. The platform has checked the signature.
func (t token) issuedByEntra() bool {
	for _, issuer := range t.all([]string{"iss"}) {
		u, err := url.Parse(issuer)
		if err != nil || u.Scheme != "https" || !slices.Contains(issuers, strings.ToLower(u.Hostname())) && !strings.HasSuffix(strings.ToLower(u.Hostname()), ".ciamlogin.com") {
			return false
		}
	}
	return true
}

// application reports whether an application holds the token in its own name: its idtyp is app, or it has no
// delegated scope.
func (t token) application() bool {
	if kind := t.first([]string{"idtyp"}); kind != "" {
		return strings.EqualFold(kind, "app")
	}
	return t.first(appClaims) != "" && t.first(scopeClaims) == "" && t.first(nameClaims) == ""
}

// overage reports whether the user has groups that the token does not name.
func (t token) overage() bool { return len(t.all(groupClaims)) == 0 && t.first(overageClaims) != "" }
