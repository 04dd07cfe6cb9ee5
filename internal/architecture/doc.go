// Package architecture holds the rules that the repository keeps as a whole: which package may import which, and that
// every exported name says what it is. It holds tests only.
package architecture
