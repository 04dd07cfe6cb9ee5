// Package check contains only tests. They check that the template, the workflows, the image and azd's project are
// valid and agree with the program. It is a module of its own, so that the dependencies of these tests are not
// dependencies of Roundhouse's users.
package check
