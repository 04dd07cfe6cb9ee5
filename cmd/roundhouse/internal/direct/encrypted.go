package direct

import (
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

// covers returns the texts shown for encrypted payloads: this program has no key.
func covers() map[string]codec.Cover {
	return map[string]codec.Cover{
		engine.DefaultHistoryTable: func(row tables.Entity, keyID string) map[string]any {
			text := encryptedText(keyID)
			quoted, _ := json.Marshal(text) // strings always marshal
			shown := map[string]any{"Input": string(quoted), "Output": string(quoted)}
			if row.String("Status") == string(engine.StatusFailed) {
				shown["Error"] = text
			}
			return shown
		},
		engine.DefaultDeadLetterTable: func(_ tables.Entity, keyID string) map[string]any {
			text := encryptedText(keyID)
			return map[string]any{"OriginalMessage": text, "ErrorMessage": text}
		},
		audit.DefaultTable: func(row tables.Entity, keyID string) map[string]any {
			text := encryptedText(keyID)
			if row.String("Outcome") != "" { // it is the end of an entry
				return map[string]any{"After": text}
			}
			return map[string]any{"Reason": text, "Before": text}
		},
	}
}

func encryptedText(keyID string) string {
	return fmt.Sprintf("[encrypted with the key %s; the API of the app shows it]", keyID)
}
