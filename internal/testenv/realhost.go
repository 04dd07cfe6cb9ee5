package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// RealHostFolder is the environment variable that names the folder of the real Functions host.
	RealHostFolder = "REALHOST"
	// RealHostExtensions is the one that names a folder with the assemblies of its queue extension, and extensions.json.
	RealHostExtensions = "REALHOST_EXTENSIONS"
)

// RealHost is the folder of the real Functions host. Without one the test is skipped, even where everything is demanded: the
// host is no package that a machine could install.
func RealHost(t testing.TB) (dir string) {
	t.Helper()
	return named(t, RealHostFolder, filepath.Join("npm", "package", "bin", "linux-x64", "func"),
		"the real Functions host: name its folder in "+RealHostFolder)
}

// RealHostQueues is the folder of the real host's queue extension. Without one the test is skipped as by RealHost.
func RealHostQueues(t testing.TB) (dir string) {
	t.Helper()
	return named(t, RealHostExtensions, "extensions.json", "the queue extension of the real Functions host: name its folder in "+RealHostExtensions)
}

// named is the folder that a variable names. A variable that is set has to name one that holds a file.
func named(t testing.TB, variable, file, missing string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		Skip(t, missing)
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return dir
}
