// Package queueprobe detects that no host listens to the program's queues. A host without its queue extension reports
// that only in its own log: timers fire, HTTP is answered, and messages wait.
//
// A timer function sends a probe through a queue of the program when no message has arrived for half an hour, and
// checks five minutes later whether it has arrived. Any message counts, so a busy queue is not deaf, even if the
// probe itself is late. The state is in storage: the timer, the listener and the health check may be three processes.
//
// Promises:
//   - A queue counts as deaf only after two checks, five minutes apart, have found a probe missing. The first of them
//     resends it, in case the queue was cleared.
//   - A queue is never deaf while the app is stopped: checks are counted, not time.
//   - It costs one request for each check, and three more and a delivery in half an hour without other messages; with
//     messages, each process makes a request in five minutes.
//
// The package owns the partition "queue-probe" of its table: the row "sent" is the timer's, and "heard" the listener's.
package queueprobe
