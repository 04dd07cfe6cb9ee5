// Package access authenticates the caller of a request, once, and checks the caller's permissions.
//
// Promises:
//   - A caller is a user, an application, a machine with a key, the local user, or anonymous. Its identity comes from
//     data that the platform or the host has checked, never from a body or a header that callers can write
//     (Control.Principal).
//   - Every endpoint needs one Permission, which a principal has or has not (Principal.May). Roles are sets of
//     permissions; a Policy assigns roles.
//   - Only a tenant itself and the home tenant see the tenant's data (Principal.Sees). Data without a tenant, and
//     permissions for all tenants (Permission.Platform), are for the home tenant, machines and the local user.
//   - An undecidable request is refused.
//
// Users and applications are identified by the ids of their tenant and of their object there (Principal.ID): names
// and addresses change, and can be reused. The package owns no storage keys.
package access
