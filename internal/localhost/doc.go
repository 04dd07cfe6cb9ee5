// Package localhost runs a staged Functions app on this machine. It is a Functions host for custom handlers, for
// development and for tests, and communicates with the handler exactly as the real host does.
//
// It reads the deployed layout (a script root with host.json, local.settings.json, the handler binary and one direct
// child folder per function), starts the handler, listens to the queues, keeps the timers and serves HTTP on loopback.
// It reproduces the behaviour that production depends on, including its traps: the double encoding of queue text,
// message members that overwrite the metadata, chunked bodies, the ten minutes for which a received message is hidden,
// poison queues, the exit codes that restart the handler or do not, and the kill of the process two seconds after a
// function timed out.
//
// A proxied request arrives as the real host's proxy sends it. Its path is decoded and encoded again, so an escaped
// slash is escaped twice; dot segments are resolved. Headers of one name are joined, and those of the host replace a
// client's. When the connection to the handler breaks, a request without a body is sent up to ten times, with the same
// invocation id. Three cases become a 500 without a body: an answer that does not start within 240 seconds, a body of
// more than 100 MiB, and a large body that the handler refuses unread. internal/acceptance/realhost compares all of
// this with the real host, where a machine has that.
//
// It differs where the behaviour of the real host helps no user:
//   - A response that would make the real host hang (an empty body, or null) is reported immediately as a [Violation].
//   - A handler that keeps crashing ends [Host.Run] with an error, not with exit code 0.
//   - When it stops, it sends the handler SIGTERM, so that running work is handed back, and SIGKILL a moment later. The
//     real host only sends SIGKILL. The handler has its own process group, where the system has them, so that Ctrl-C
//     does not reach it twice.
//   - While storage is unavailable it keeps retrying. The real host ends itself after 10 to 25 seconds, and its
//     platform restarts it. Messages behave alike: received ones are redelivered when their ten minutes are over.
//   - The landing page is a line, and the admin endpoints have no keys, no files and no deletion of functions:
//     development does not need them.
//   - Pages of other sites are refused, see below; on the real host, the platform and the app do that.
//   - Malformed HTTP is refused by net/http, with a text in the answer, and so are invalid escapes in a path (%ZZ),
//     which the real host takes for text.
//   - A message in a poison queue stays until it is handled. The real host has storage delete it after seven days.
//
// Unsupported features (bindings other than queue, timer, http and manual; retry policies in function.json; custom
// routes in host.json) are refused by name.
//
// Execution is at least once, as on the real host: a message is deleted after a successful invocation, made visible
// again after a failed one, and moved to the poison queue when its attempts are used up. Stopping waits briefly for
// running invocations, then kills the handler; every received message is settled first.
//
// No web page can use the host through a browser. A request with a Host other than a loopback name of its own listener,
// or with a foreign Origin, is refused with 403 before it runs anything, with any key.
//
// The package owns the queues named <queue>-poison, created when the first message is moved there, and the blobs
// timers/<host id>/Host.Functions.<function>/status in the container azure-webjobs-hosts.
package localhost
