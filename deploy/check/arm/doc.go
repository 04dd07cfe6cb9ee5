// Package arm holds what templates deploy against the types that Azure Resource Manager publishes: whether a resource type has
// the API version, whether its body has only members that there are and all that it needs, and whether literals have the right
// kind and are among the values that the type names.
//
// It reads the files types.json as the generator of github.com/Azure/bicep-types-az writes them. A value that is not known before
// a deployment is taken for right.
package arm
