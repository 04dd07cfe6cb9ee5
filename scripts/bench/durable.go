package main

// The storage requests of the Azure Storage provider of Durable Functions (DurableTask.AzureStorage,
// github.com/Azure/durabletask), by its code, with its defaults and without extended sessions; docs/performance.md
// describes them.
const (
	// durableBatch is the maximum number of messages in one get from a control queue. So a fan-out costs least when
	// all of its results arrive in full batches, which is assumed here.
	durableBatch = 32
	// durableRows is the number of history rows in one transaction in addition to the sentinel, durablePage the
	// number in one query.
	durableRows = 99
	durablePage = 1000
)

// durableStart is the work of its client: a read of an instance with this name, a message, a row.
func durableStart() tally { return tally{tables: 2, queues: 1} }

// durableEpisode is one turn of an orchestrator: it receives messages, queries the whole history, sends a message for
// each new activity, writes the new history and the instance's row, and deletes the received messages, one by one.
func durableEpisode(taken, scheduled, rowsBefore, rowsNew int) tally {
	pages := max(1, (rowsBefore+durablePage-1)/durablePage)
	writes := (rowsNew + durableRows - 1) / durableRows
	return tally{tables: pages + writes + 1, queues: 1 + scheduled + taken}
}

// durableActivities is the cost of n activities for their workers: each receives its message, sends its result,
// deletes its message.
func durableActivities(n int) tally { return tally{queues: 3 * n} }

// durableSequence returns an orchestration of n activities, one after the other.
func durableSequence(n int) tally {
	// The first turn also checks whether the start is a duplicate.
	t := durableStart().plus(tally{tables: 1}).plus(durableActivities(n))
	for i := range n + 1 {
		scheduled := 1
		if i == n {
			scheduled = 0
		}
		t = t.plus(durableEpisode(1, scheduled, 0, 1))
	}
	return t
}

// durableFanOut returns an orchestration that calls n activities in parallel, whose results arrive in full batches.
func durableFanOut(n int) tally {
	t := durableStart().plus(tally{tables: 1}).plus(durableActivities(n)).plus(durableEpisode(1, n, 0, n+3))
	for rows, left := n+3, n; left > 0; {
		batch := min(left, durableBatch)
		t = t.plus(durableEpisode(batch, 0, rows, batch+2))
		rows, left = rows+batch+2, left-batch
	}
	return t
}

// durableTimer returns a timer of less than six days: a message that is hidden until then, and a turn.
func durableTimer() tally { return tally{queues: 1}.plus(durableEpisode(1, 0, 0, 1)) }

// durableEvent returns an event over HTTP: two reads of the instance, a message, and a turn.
func durableEvent() tally { return tally{tables: 2, queues: 1}.plus(durableEpisode(1, 0, 0, 1)) }
