// Package hosts runs local Functions hosts as processes over one storage account, so that they can be killed: each host
// has a handler as its child, with an app for being killed. The acceptance tests and the benchmark of recovery share
// it.
//
// A host is [localhost] with the deployed host.json, with nothing shortened: a received message is hidden for ten
// minutes. The host reports each received and each settled message to the process that started it (see [Host.Held]),
// which so knows the host's messages in flight when it is killed. A host ends with the process that started it, and its
// handler with the host.
//
// The program of a process that starts hosts is also the program of the hosts and handlers, so it calls [Main] first.
//
// The package owns no storage keys; those of the account are the app's and the host's.
package hosts
