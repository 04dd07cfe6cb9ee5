package sink_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sink"
	"github.com/vibedata/roundhouse/tables"
)

// A row of any size and content can be quarantined: with its data up to a limit, without it above. Otherwise it would
// block its poller forever.
func TestSizesOfQuarantinedRows(t *testing.T) {
	t.Parallel()
	const limit = 128 << 10
	letters := engine.NewDeadLetters(tables.NewMemory(), "")
	testenv.OK(t, letters.CreateTable(t.Context()))
	for _, unit := range []string{"x", "<", "\u2028", "𝄞", `\"`, `\u0000`} {
		for n := limit - 1; n <= limit+1; n++ {
			text := strings.Repeat(unit, (n-8)/len(unit))
			d := delivery(`{"x":"` + text + strings.Repeat("y", n-8-len(text)) + `"}`)
			q := poller.Quarantined{Poller: fmt.Sprintf("p%x%d", unit, n), Row: d.Rows[0], EventID: d.EventIDs[0], Err: errors.New("refused"), FirstFailureAt: time.Unix(1, 0), LastFailureAt: time.Unix(1, 0)}
			if err := sink.DeadLetters(letters, poller.Setting{})(t.Context(), q); err != nil {
				t.Fatalf("%d bytes of %q: %.300v", n, unit, err)
			}
			page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{sink.EngineName(q.Poller)}})
			if err != nil || len(page.DeadLetters) != 1 {
				t.Fatalf("%d bytes of %q: %d letters, %v", n, unit, len(page.DeadLetters), err)
			}
			l, err := letters.Get(t.Context(), sink.EngineName(q.Poller), page.DeadLetters[0].RowKey)
			var event sink.Event
			if err == nil {
				err = json.Unmarshal(l.OriginalMessage, &event)
			}
			if err != nil || (string(event.Data) == string(d.Rows[0].Data)) != (n <= limit) || (event.DataSize == n) != (n > limit) {
				t.Errorf("%d bytes of %q: %d of data, size %d, %v", n, unit, len(event.Data), event.DataSize, err)
			}
		}
	}
}
