// Package check holds tests only: the template, the workflows, the image and azd's project are whole, and say what the program
// says. It is a module of its own, so that what only these tests need is no dependency of those who use Roundhouse.
package check
