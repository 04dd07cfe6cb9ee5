// Package cputime measures how much processor time this process has used, which tells work from waiting: a process that is suspended or
// starved uses none, however much time passes.
package cputime
