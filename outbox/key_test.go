package outbox

import (
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	forms := map[string]func(tenant, category, entity, kind, version string) uuid.UUID{"Key": Key, "DocumentKey": DocumentKey}
	t.Run("DeterministicKey_SameInput_SameGuid", func(t *testing.T) {
		t.Parallel()
		for form, make := range forms {
			if a, b := make("t", "c", "e", "k", "1"), make("t", "c", "e", "k", "1"); a != b || a == uuid.Nil {
				t.Errorf("%s: %s and %s", form, a, b)
			}
		}
	})
	t.Run("DeterministicKey_DifferentInput_DifferentGuid", func(t *testing.T) {
		t.Parallel()
		inputs := [][5]string{
			{"t", "c", "e", "k", "1"}, {"T2", "c", "e", "k", "1"}, {"t", "c2", "e", "k", "1"}, {"t", "c", "e2", "k", "1"},
			{"t", "c", "e", "k2", "1"}, {"t", "c", "e", "k", "2"}, {"t", "c", "e", "k", ""},
		}
		for form, make := range forms {
			seen := map[uuid.UUID][5]string{}
			for _, in := range inputs {
				id := make(in[0], in[1], in[2], in[3], in[4])
				if other, ok := seen[id]; ok {
					t.Errorf("%s: %v and %v are both %s", form, in, other, id)
				}
				seen[id] = in
			}
		}
	})
	t.Run("parts do not run into each other", func(t *testing.T) {
		t.Parallel()
		if Key("a:b", "c", "", "", "") == Key("a", "b:c", "", "", "") || Key("A", "", "", "", "") == Key("a", "", "", "", "") {
			t.Error("different inputs, one key")
		}
		if id := Key("a", "", "", "", ""); id.Version() != 8 || id.Variant() != uuid.RFC4122 {
			t.Errorf("%s is version %d of variant %v", id, id.Version(), id.Variant())
		}
	})
	t.Run("the option selects the form", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if got := w.process(t, nil).writer.Key("T", "c", "e", "k", ""); got != Key("T", "c", "e", "k", "") {
			t.Errorf("%s", got)
		}
		w.options.KeyForm = Document
		if got := w.process(t, nil).writer.Key("T", "c", "e", "k", ""); got != DocumentKey("t", "c", "e", "k", "0") {
			t.Errorf("%s", got)
		}
	})
}

// The functions return the vectors in docs/outbox.md.
func TestKeyVectors(t *testing.T) {
	t.Parallel()
	text := testenv.Must(os.ReadFile("../docs/outbox.md"))(t)
	checked := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 7 || !strings.Contains(cells[5], "-") || strings.HasPrefix(strings.TrimSpace(cells[0]), "--") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
			if cells[i] == "(empty)" {
				cells[i] = ""
			}
		}
		if got := Key(cells[0], cells[1], cells[2], cells[3], cells[4]).String(); got != cells[5] {
			t.Errorf("Key(%q) = %s, the document says %s", cells[:5], got, cells[5])
		}
		if got := DocumentKey(cells[0], cells[1], cells[2], cells[3], cells[4]).String(); got != cells[6] {
			t.Errorf("DocumentKey(%q) = %s, the document says %s", cells[:5], got, cells[6])
		}
		checked++
	}
	if checked < 6 {
		t.Errorf("only %d vectors", checked)
	}
}
