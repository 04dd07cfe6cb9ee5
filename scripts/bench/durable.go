package main

// What the Azure Storage provider of Durable Functions (DurableTask.AzureStorage, github.com/Azure/durabletask) asks of
// storage, as its code reads, with its defaults and without extended sessions; docs/performance.md puts it into words.
const (
	// durableBatch is how many messages it takes from a control queue in one get at most. So a fan-out costs least when
	// all of its results arrive in full batches, which is what is assumed here.
	durableBatch = 32
	// durableRows is how many rows of history go into one transaction beside the sentinel, durablePage how many come with
	// one query.
	durableRows = 99
	durablePage = 1000
)

// durableStart is what its client does: a look for an instance of this name, a message, a row.
func durableStart() tally { return tally{tables: 2, queues: 1} }

// durableEpisode is one turn of an orchestrator: it takes messages, queries the whole history, puts a message for each
// new activity, writes the new history and the instance's row, and deletes the messages it took, one by one.
func durableEpisode(taken, scheduled, rowsBefore, rowsNew int) tally {
	pages := max(1, (rowsBefore+durablePage-1)/durablePage)
	writes := (rowsNew + durableRows - 1) / durableRows
	return tally{tables: pages + writes + 1, queues: 1 + scheduled + taken}
}

// durableActivities is what n activities cost their workers: each takes its message, puts its result, deletes its message.
func durableActivities(n int) tally { return tally{queues: 3 * n} }

// durableSequence is an orchestration of n activities, one after the other.
func durableSequence(n int) tally {
	// The first turn looks whether the start is a duplicate, too.
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

// durableFanOut is an orchestration that calls n activities at once, when their results come in full batches.
func durableFanOut(n int) tally {
	t := durableStart().plus(tally{tables: 1}).plus(durableActivities(n)).plus(durableEpisode(1, n, 0, n+3))
	for rows, left := n+3, n; left > 0; {
		batch := min(left, durableBatch)
		t = t.plus(durableEpisode(batch, 0, rows, batch+2))
		rows, left = rows+batch+2, left-batch
	}
	return t
}

// durableTimer is a timer of less than six days: a message that is hidden until then, and a turn.
func durableTimer() tally { return tally{queues: 1}.plus(durableEpisode(1, 0, 0, 1)) }

// durableEvent is an event that comes over HTTP: two looks at the instance, a message, and a turn.
func durableEvent() tally { return tally{tables: 2, queues: 1}.plus(durableEpisode(1, 0, 0, 1)) }
