// Package cputime measures the processor time of this process, which distinguishes work from waiting: a suspended or
// starved process uses none.
package cputime
