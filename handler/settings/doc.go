// Package settings reads an app's environment: the settings of every app ([Load]), and those of its engines
// ([Reader]). docs/settings.md describes them.
//
// All missing and invalid settings are reported together, with the remedy, and no error repeats a value that may be a
// secret. The package reads the environment and host.json, and owns no storage keys.
package settings
