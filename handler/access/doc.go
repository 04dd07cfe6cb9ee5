// Package access decides who may do what: it tells who sends a request, once, and what that principal may do.
//
// What it promises:
//   - A caller is one of a person, an application, a machine with a key, the local user, or nobody. Who it is comes from what
//     the platform or the host has checked, never from a body or a header that callers can write (Control.Principal).
//   - Every endpoint needs one Permission, and a principal has a permission or has not (Principal.May). Roles are sets of
//     permissions; a Policy says who has which role.
//   - What belongs to a tenant is for that tenant and for the home tenant (Principal.Sees). What belongs to none, and what
//     concerns all tenants (Permission.Platform), is for the home tenant, machines and the local user.
//   - What cannot be decided is refused.
//
// People and applications are known by the ids of their tenant and of their object there (Principal.ID): names and addresses
// change, and others can get them. It owns no storage keys.
package access
