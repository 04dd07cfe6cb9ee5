// Package nodes lets several nodes share a storage on virtual time while they are killed, frozen, cut off from storage and set to
// wrong clocks, and checks what the program promises about work that was in hand. It is tests alone, and owns no storage keys.
package nodes
