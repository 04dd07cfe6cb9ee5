// Package year runs all engines, on both apps, through a year of virtual time in which everything that they need is out of order
// now and then. It is tests alone, and owns no storage keys.
package year
