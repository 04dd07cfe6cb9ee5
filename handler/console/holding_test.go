package console

import (
	"net/url"
)

// heldPages are the pages of this file.
func heldPages() map[string]shown {
	note := func(text string) map[string]any {
		return map[string]any{"atUtc": "2026-11-26T13:00:00Z", "by": text, "text": text}
	}
	with := func(more map[string]any) answers { return typical().with(answers{oneLetter: letterData(more)}) }
	taken := map[string]any{"assignee": "t/o", "assigneeName": "ada@example.com", "assignedAtUtc": "2026-11-26T13:00:00Z", "notes": []any{note("first\nsecond")}}
	bad := map[string]any{"assignee": evil, "assigneeName": turning, "assignedAtUtc": "9999-01-01T00:00:00Z", "notes": []any{note(evil), note(turning)}}
	return map[string]shown{
		"held_mine":    at(with(taken), letterM1, 200),
		"held_hostile": at(with(bad), letterM1, 200),
		"held_reader":  at(with(taken).with(answers{"/api/me": reader()}), letterM1, 200),
		"held_list":    at(typical().with(answers{"/api/dlq": list(letterData(bad))}), lettersPath+"?assignee=nobody", 200),
		"held_refused": at(with(nil).with(answers{oneLetter + "/notes": refusal{409, "TooManyNotes", "A dead letter has 50 notes at most."}}), letterM1+"/notes", 409).
			sends(url.Values{"key": {"k"}, "note": {evil}}),
	}
}
