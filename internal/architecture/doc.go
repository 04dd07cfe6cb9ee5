// Package architecture tests the rules of the repository as a whole, such as allowed imports and documentation of
// exported names. It holds tests only.
package architecture
