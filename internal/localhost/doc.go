// Package localhost runs a staged Functions app on this machine: it is a Functions host for custom handlers, for
// development and for tests, and speaks to the handler exactly as the real host does.
//
// It reads the layout that is also deployed (a script root with host.json, local.settings.json, the handler binary and
// one direct child folder a function), starts the handler, listens to the queues, keeps the timers and serves HTTP on
// loopback. What production depends on is reproduced, traps included: the double encoding of queue text, message
// members that overwrite the metadata, chunked bodies, the ten minutes for which a received message is hidden, poison
// queues, the exit codes that restart the handler or do not, the process that is killed two seconds after a function
// timed out, and stopping with SIGKILL and nothing before it.
//
// It differs where the real host helps nobody: a response that would make the real host hang (an empty body, or null)
// is reported at once as a [Violation], and a handler that cannot be kept alive ends [Host.Run] with an error. What it
// does not support (bindings other than queue, timer, http and manual; retry policies in function.json; custom routes
// in host.json) is refused by name.
//
// It promises at-least-once execution as the real host does: a message is deleted after a successful invocation, made
// visible again after a failed one, and moved to the poison queue when its attempts are used up. Stopping waits for
// running invocations for a moment, then kills the handler; every message that was received is put to rest first.
//
// It also promises that no web page uses it through a browser: a request whose Host is not a loopback name of its own
// listener, or whose Origin is another's, is refused with 403 before anything runs, whatever key it has.
//
// Storage that it owns: the queues named <queue>-poison, created when the first message is moved there, and the blobs
// timers/<host id>/Host.Functions.<function>/status in the container azure-webjobs-hosts.
package localhost
