// Package queueprobe finds out whether anybody listens to the program's queues. A host whose queue extension is missing says so in
// its own log only: timers fire, HTTP is answered, and messages wait.
//
// A timer function sends a message through a queue of the program when nothing has come from there for half an hour, and looks
// five minutes later whether it has arrived. Whatever arrives counts, so a queue that is busy is not deaf, however late the probe
// itself comes. What is known is in storage: the timer, the listener and who is asked may be three processes.
//
// What it promises:
//   - A queue is not called deaf before two looks, five minutes apart, have found a probe missing. That of a queue which somebody
//     has cleared is sent again at the first of them.
//   - Nothing is called deaf while the app is stopped: looks are counted, not time.
//   - It costs one request a look, and three more and a delivery in half an hour in which nothing else comes; where messages do
//     come, a request in five minutes of each process.
//
// The package owns the partition "queue-probe" of its table: the row "sent" is the timer's, and "heard" the listener's.
package queueprobe
