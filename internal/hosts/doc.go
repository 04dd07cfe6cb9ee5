// Package hosts runs local Functions hosts as processes over one storage account, so that they can be killed: each host has a
// handler below it, and the app of that is made for being broken. The acceptance tests and the benchmark of recovery share it.
//
// It promises that a host is what [localhost] makes of the host.json that is deployed, with nothing shortened: a received message is
// hidden for ten minutes. What a host received, and what it put to rest, it tells the process that started it (see [Host.Held]), and
// that is the truth about what it has in hand when it is killed. A host ends when the process that started it does, and its handler
// with it.
//
// A process that starts hosts is itself the program of both parts, so the first thing it does is to call [Main].
//
// It owns no storage keys; those of the account are the app's and the host's.
package hosts
