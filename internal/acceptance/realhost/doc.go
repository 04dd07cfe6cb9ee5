// Package realhost runs the staged app on the real Functions host, where a machine has it, and checks that the local
// host of internal/localhost behaves like it. It holds tests only, and they are skipped without two environment
// variables:
//
//	REALHOST             the folder of the real host: dotnet/ and npm/package/bin/linux-x64/func
//	REALHOST_EXTENSIONS  a folder with the assemblies of the queue extension and their extensions.json; without it the
//	                     tests of queue triggers are skipped alone
//
// testdata/requests.http holds the requests for both hosts, in sequence; a new comparison only needs a new request
// there. differences_test.go lists the allowed differences with their reasons.
package realhost
