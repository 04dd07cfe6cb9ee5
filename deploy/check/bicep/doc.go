// Package bicep reads Bicep files, and works out which resources they deploy for given parameters, as far as that can be known
// without Azure.
//
// It promises that a file with a syntax error, an unknown symbol, a module parameter that is missing or unknown, or a function
// that it does not know is an error, never passed over. What only Azure knows, such as the id of a resource, is an Unknown and
// makes everything that follows from it unknown. It is no compiler: it knows the part of the language that the templates of this
// repository use, and does not check types.
package bicep
