// Package docs tests the documents: links lead to existing targets, JSON is valid input or output of the program, Go
// compiles, and commands run. CONTRIBUTING.md explains the words after the language of a block. It holds tests only.
package docs
