// Package bicep reads Bicep files and computes which resources they deploy for given parameters, as far as that is
// possible without Azure.
//
// A syntax error, an unknown symbol, a missing or unknown module parameter, and an unknown function are always
// errors; the package never ignores them. A value that only Azure knows, such as the ID of a resource, is an Unknown,
// and so is everything computed from it. The package is not a compiler: it supports the part of the language that
// this repository's templates use, and does not check types.
package bicep
