// Package docs holds tests only: what the documents say is true. Links lead somewhere, JSON is what the program reads, Go
// compiles, and commands run. CONTRIBUTING.md says what the word behind the language of a block means.
package docs
