package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// RealHostFolder is the environment variable that names the folder of the real Functions host.
	RealHostFolder = "REALHOST"
	// RealHostExtensions is the environment variable that names a folder with the assemblies of its queue extension, and
	// extensions.json.
	RealHostExtensions = "REALHOST_EXTENSIONS"
)

// RealHost returns the folder of the real Functions host. Without one the test is skipped, even if missing programs are
// failures: the host is not an installable package.
func RealHost(t testing.TB) (dir string) {
	t.Helper()
	return named(t, RealHostFolder, filepath.Join("npm", "package", "bin", "linux-x64", "func"),
		"the real Functions host: name its folder in "+RealHostFolder)
}

// RealHostQueues returns the folder of the real host's queue extension. Without one the test is skipped as by RealHost.
func RealHostQueues(t testing.TB) (dir string) {
	t.Helper()
	return named(t, RealHostExtensions, "extensions.json", "the queue extension of the real Functions host: name its folder in "+RealHostExtensions)
}

// named returns the folder in a variable. A set variable has to name a folder with a file of this name.
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
