// Package poison takes messages out of the poison queues, to which the Functions host moves what it has given up. No function
// listens to these queues: the host would poll each of them as often as any other, for messages that hardly ever come.
//
// A [Receiver] is called by a timer. It receives what is there, from all queues at once, has each message handled as a function of
// its queue would, those of one queue one after the other, and deletes it last.
//
// What it promises:
//   - A message is deleted when its handler has returned nil, and stays otherwise. It comes again ten minutes later, however often
//     that happens: nobody gives up what the host has given up. Handlers have to be idempotent, because a message comes again, too,
//     when the process dies, or when it cannot be deleted.
//   - A queue that fails, or a message that does, keeps no other from its turn. The error says which queue, and how many stay.
//   - A queue that does not exist is empty, and is not created.
//   - It is bounded: a run takes no more than Limit messages of a queue, and ends with its context.
//   - An empty queue costs one request a run.
//
// The package stores nothing and owns no queues.
package poison
