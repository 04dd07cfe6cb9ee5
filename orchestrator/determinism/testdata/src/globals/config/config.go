// Package config has variables of which some change.
package config

// Limit changes.
var Limit = 3 // want Limit:`is set by config\.Load`

// Name does not.
var Name = "config"

// Load changes Limit.
func Load(n int) { Limit = n } // want Load:`writes the package variable`
