package settings

import (
	"slices"
	"strings"
)

// Scope is the scope of a role assignment in Azure. An engine may have scopes of its own, which the tools here do not
// know.
type Scope string

// The scopes of the platform: the app's storage account, its key vault, and the Application Insights component that the host
// sends its telemetry to.
const (
	AtStorage  Scope = "storage"
	AtVault    Scope = "vault"
	AtInsights Scope = "insights"
)

// Role is a built-in role of Azure that the identity of an app needs.
type Role struct {
	Scope Scope  `json:"scope"`
	Name  string `json:"name"`
	// ID is the GUID of the role's definition, the same in every tenant.
	ID string `json:"id"`
	// With is a setting that requires the role; "" if it is always required.
	With string `json:"with,omitempty"`
}

// SecretsOfficer returns the role of engines that write secrets (Reader.NeedsRole).
func SecretsOfficer() Role {
	return Role{Scope: AtVault, Name: "Key Vault Secrets Officer", ID: "b86a8fe4-44ce-4948-aee5-eccb2c155cd7"}
}

// CertificatesOfficer returns the role of engines that write certificates.
func CertificatesOfficer() Role {
	return Role{Scope: AtVault, Name: "Key Vault Certificates Officer", ID: "a4417e6f-fecd-4de8-b567-7b0420556985"}
}

// Authentication is the host's setting that sends its telemetry with the identity of the app.
const Authentication = "APPLICATIONINSIGHTS_AUTHENTICATION_STRING"

// platformRoles returns the roles of every app. The host keeps its leases and keys in blobs, which requires an owner.
func platformRoles() []Role {
	return []Role{
		{Scope: AtStorage, Name: "Storage Blob Data Owner", ID: "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"},
		{Scope: AtStorage, Name: "Storage Queue Data Contributor", ID: "974c5e8b-45b9-4653-ba55-5f855dd0fb88"},
		{Scope: AtStorage, Name: "Storage Table Data Contributor", ID: "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3"},
		{Scope: AtVault, Name: "Key Vault Secrets User", ID: "4633458b-17de-408a-b874-0445c86b69e6"},
		{Scope: AtVault, Name: "Key Vault Crypto Service Encryption User", ID: "e147488a-f6f5-4113-8e2d-b22465e65bf6", With: payloadKey},
		{Scope: AtInsights, Name: "Monitoring Metrics Publisher", ID: "3913510d-42f4-4e42-8a64-420c390055eb", With: Authentication},
	}
}

// NeedsRole records a role that the app's identity needs in addition to those of every app. Tools read it (Roles);
// nothing is assigned or checked here.
func (r *Reader) NeedsRole(role Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.roles, role) {
		r.roles = append(r.roles, role)
	}
}

// Roles returns the roles of the app's identity: those of every app, and those of its engines, by scope and name.
func (r *Reader) Roles() []Role {
	r.mu.Lock()
	defer r.mu.Unlock()
	roles := append(platformRoles(), r.roles...)
	slices.SortFunc(roles, func(a, b Role) int {
		return strings.Compare(string(a.Scope)+" "+a.Name, string(b.Scope)+" "+b.Name)
	})
	return roles
}
