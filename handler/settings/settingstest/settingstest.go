// Package settingstest has environments for tests of code that reads settings. It owns no storage keys.
package settingstest

import "maps"

// Environment is a set of variables.
type Environment map[string]string

// Lookup finds a variable, like os.LookupEnv.
func (e Environment) Lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// With returns e with some variables set: names and values alternate.
func (e Environment) With(pairs ...string) Environment {
	merged := maps.Clone(e)
	if merged == nil {
		merged = Environment{}
	}
	for i := 0; i < len(pairs); i += 2 {
		merged[pairs[i]] = pairs[i+1]
	}
	return merged
}

// Emulator returns the minimal environment of an app: the storage emulator, and the host.json in the folder root.
func Emulator(root string) Environment {
	return Environment{"FUNCTIONS_CUSTOMHANDLER_PORT": "0", "FUNCTIONS_APP_ROOT_PATH": root, "AzureWebJobsStorage": "UseDevelopmentStorage=true"}
}
