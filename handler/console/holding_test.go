package console

import (
	"net/url"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

// The page of a dead letter has who takes care of it and what was noted, whatever that is; what the API has against a change is said
// there, beside what was entered.
func TestGoldenHeld(t *testing.T) {
	t.Parallel()
	note := func(text string) map[string]any {
		return map[string]any{"atUtc": "2026-11-26T13:00:00Z", "by": text, "text": text}
	}
	with := func(more map[string]any) answers { return typical().with(answers{oneLetter: letterData(more)}) }
	taken := map[string]any{"assignee": "t/o", "assigneeName": "ada@example.com", "assignedAtUtc": "2026-11-26T13:00:00Z", "notes": []any{note("first\nsecond")}}
	bad := map[string]any{"assignee": evil, "assigneeName": turning, "assignedAtUtc": "9999-01-01T00:00:00Z", "notes": []any{note(evil), note(turning)}}
	for name, test := range map[string]struct {
		api    answers
		target string
		status int
	}{
		"held_mine":    {with(taken), letterM1, 200},
		"held_hostile": {with(bad), letterM1, 200},
		"held_reader":  {with(taken).with(answers{"/api/me": reader()}), letterM1, 200},
		"held_list":    {typical().with(answers{"/api/dlq": list(letterData(bad))}), lettersPath + "?assignee=nobody", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := get(t, newConsole(t, test.api, access.Control{EasyAuth: true}), test.target)
			if rec.Code != test.status {
				t.Errorf("status %d", rec.Code)
			}
			compare(t, name, rec.Body.Bytes())
			harmless(t, rec.Body.String())
		})
	}
	refused := with(nil).with(answers{oneLetter + "/notes": refusal{409, "TooManyNotes", "A dead letter has 50 notes at most."}})
	rec := send(t, newConsole(t, refused, access.Control{EasyAuth: true}), letterM1+"/notes", url.Values{"key": {"k"}, "note": {evil}})
	if rec.Code != 409 {
		t.Errorf("status %d", rec.Code)
	}
	compare(t, "held_refused", rec.Body.Bytes())
	harmless(t, rec.Body.String())
}
