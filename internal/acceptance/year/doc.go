// Package year runs all engines, on both apps, through a year of virtual time in which each of their services has
// outages. It holds tests only, and owns no storage keys.
package year
