// Package settings reads what the environment tells an app: the settings of every app ([Load]), and those that its engines
// ask for ([Reader]). docs/settings.md describes them.
//
// It promises that everything that is missing or wrong is told at once, with what to do about it, and that no error repeats
// a value that may be a secret. It reads the environment and host.json, and owns no storage keys.
package settings
