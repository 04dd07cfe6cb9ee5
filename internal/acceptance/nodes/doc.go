// Package nodes runs several nodes over shared storage on virtual time while they are killed, frozen, disconnected from
// storage and set to wrong clocks, and checks the program's promises about work in flight. It holds tests only, and
// owns no storage keys.
package nodes
