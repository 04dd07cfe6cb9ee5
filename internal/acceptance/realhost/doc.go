// Package realhost runs the staged app on the real Functions host, where a machine has it, and shows that the local host of
// internal/localhost behaves like it. It holds tests only, and they are skipped without two environment variables:
//
//	REALHOST             the folder of the real host: dotnet/ and npm/package/bin/linux-x64/func
//	REALHOST_EXTENSIONS  a folder with the assemblies of the queue extension and their extensions.json; without it the
//	                     tests of queue triggers are skipped alone
//
// testdata/requests.http is what both hosts are asked, one request after the other; adding a request to it is all that a new
// comparison needs. Where the answers may differ is a table with a reason for each, in differences_test.go.
package realhost
