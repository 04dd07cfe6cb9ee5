// Package acceptance runs the platform as its users do, and breaks it: the staged handler under the local Functions
// host, over a real Azurite, with a proxy in between that can count, refuse and kill. Whom the engines meet outside are
// servers on the wire, which the handler is led to by its settings. It holds tests only.
package acceptance
