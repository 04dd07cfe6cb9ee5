// Package localhost runs a staged Functions app on this machine: it is a Functions host for custom handlers, for
// development and for tests, and speaks to the handler exactly as the real host does.
//
// It reads the layout that is also deployed (a script root with host.json, local.settings.json, the handler binary and
// one direct child folder a function), starts the handler, listens to the queues, keeps the timers and serves HTTP on
// loopback. What production depends on is reproduced, traps included: the double encoding of queue text, message
// members that overwrite the metadata, chunked bodies, the ten minutes for which a received message is hidden, poison
// queues, the exit codes that restart the handler or do not, and the process that is killed two seconds after a function
// timed out.
//
// A proxied request arrives as the real host's proxy sends it. Its path is decoded and encoded again, so that an escaped
// slash is escaped twice; dot segments are resolved; headers of one name are joined, and those of the host take the
// place of what a client made up. When the connection to the handler breaks, a request without a body is sent up to ten
// times, with the same invocation id. An answer that does not begin within 240 seconds, a body of more than 100 MiB, and
// a large body that the handler has not read when it refuses it, all become a 500 without a body.
// internal/acceptance/realhost holds all of this against the real host, where a machine has that.
//
// It differs where the real host helps nobody:
//   - A response that would make the real host hang (an empty body, or null) is reported at once as a [Violation].
//   - A handler that cannot be kept alive ends [Host.Run] with an error, and not with exit code 0.
//   - When it stops, it sends the handler SIGTERM, so that what runs is handed back, and SIGKILL a moment later. The real host
//     sends SIGKILL and nothing before it. The handler has a process group of its own, where there are any, so that Ctrl-C does not
//     reach it twice.
//   - While storage is away it tries on. The real host ends itself after 10 to 25 seconds, and its platform starts it again;
//     what that does to messages is the same: those that were received come back when their ten minutes are over.
//   - The landing page is a line, and the admin endpoints have no keys, no files and no deletion of functions: nothing
//     that a developer does needs them.
//   - Another site's pages are refused, see below; on the real host that is for the platform and the app to do.
//   - What is no HTTP at all is refused by net/http, with a text in the answer, and so are bad escapes in a path (%ZZ),
//     which the real host takes for text.
//   - What is moved to a poison queue stays until it is handled. The real host has storage delete it after seven days.
//
// What it does not support (bindings other than queue, timer, http and manual; retry policies in function.json; custom
// routes in host.json) is refused by name.
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
