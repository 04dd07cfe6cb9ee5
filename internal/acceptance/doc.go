// Package acceptance runs the platform as its users do, and breaks it. It runs the staged handler under the local
// Functions host, over a real Azurite, behind a proxy that can count, refuse and kill. The services outside the engines
// are fake servers on the wire; settings direct the handler to them. The package holds tests only.
package acceptance
