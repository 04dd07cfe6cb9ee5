package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/poller"
)

func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// A value that a state document cannot hold is refused before it is stored, with the limit, and the document is
// unchanged. A cursor is three levels deep in it, and takes a level itself.
func TestDeepPlaces(t *testing.T) {
	const around = 4
	for levels, want := range map[int]error{payload.MaxDepth: nil, payload.MaxDepth + 1: poller.ErrInvalid, 9_998: poller.ErrInvalid} {
		keys := fmt.Sprintf(`{"id":%s}`, deep(levels-around))
		checkpoint := `{"cursor":{"kind":"integer+pk","value":"2","tiebreaker":` + keys + `}}`
		for what, operate := range map[string]func(context.Context, poller.Operator) (poller.Change, error){
			"reset to a checkpoint": func(ctx context.Context, o poller.Operator) (poller.Change, error) {
				return o.ResetToCheckpoint(ctx, name, []byte(checkpoint), poller.ChangeOptions{})
			},
			"restore a document": func(ctx context.Context, o poller.Operator) (poller.Change, error) {
				return o.ResetToCheckpoint(ctx, name, []byte(`{"version":1,"poller_name":"`+name+`","lease":{},"checkpoint":`+checkpoint+`}`), poller.ChangeOptions{})
			},
		} {
			t.Run(fmt.Sprintf("%s, %d levels", what, levels), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.state.rewinds = true
					w.source.Append(1)
					w.tick(w.process(nil, nil))
					before := w.document()
					_, err := operate(t.Context(), w.operator())
					if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "allowed") {
						t.Errorf("got %v", err)
					}
					if moved := !w.document().Cursor().Equal(before.Cursor()); moved != (want == nil) {
						t.Errorf("the place is %s", w.document().Cursor())
					}
				})
			})
		}
	}
}

// keyed returns rows with other key columns.
type keyed struct {
	poller.Source
	keys string
}

func (k keyed) Fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (poller.Batch, error) {
	b, err := k.Source.Fetch(ctx, after, limit, maxBytes)
	for i := range b.Rows {
		b.Rows[i].Cursor.Kind, b.Rows[i].Cursor.Tiebreaker = "integer+pk", []byte(k.keys)
	}
	return b, err
}

// Rows whose position cannot be stored are not delivered: otherwise they would be delivered repeatedly.
func TestPlacesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for kind, keys := range map[string]string{
		"deep": `{"id":` + deep(payload.MaxDepth) + `}`,
		"long": `{"id":"` + strings.Repeat("x", 64<<10) + `"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.Append(1)
				r := w.process(nil, func(c *poller.RunnerConfig) { c.Source = keyed{c.Source, keys} })
				if _, err := r.Tick(t.Context()); !errors.Is(err, poller.ErrInvalid) || len(w.delivered) != 0 {
					t.Errorf("%v, delivered %v", err, w.delivered)
				}
			})
		})
	}
}
