// Package arm checks the resources of templates against the types that Azure Resource Manager publishes: the API
// version of a resource type must exist, the body must have all required members and no unknown ones, and literals
// must have the right kind and be among the values that the type lists.
//
// It reads the types.json files that the generator of github.com/Azure/bicep-types-az writes. It accepts every value
// that is unknown before a deployment.
package arm
