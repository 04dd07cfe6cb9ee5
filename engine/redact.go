package engine

import (
	"encoding/json"

	"github.com/vibedata/roundhouse/internal/redact"
)

// Redact replaces secrets in a text for users or logs by [redacted]. Secrets are tokens of well-known services, keys
// of Azure, JSON Web Tokens, private keys, passwords of URLs and connection strings, credentials of headers, and the
// values of members and assignments with secret-looking names (see RedactJSON). The runtime redacts all external data
// that it stores or logs; Redact is for texts that an engine writes elsewhere. It is a second line of defence: do not
// put secrets into such texts in the first place.
func Redact(text string) string { return redact.Text(text) }

// RedactJSON replaces the secrets of a JSON document by "[redacted]". A value is secret when the name of its member looks
// secret, in any case and with any punctuation: secretText, client_secret, accountKey, token, Authorization and so on, but
// not secretName, secretVersion, keyName or tokenType, which describe a secret. All other strings are passed through
// Redact. A document without secrets is returned itself. A text that is not JSON becomes a JSON string of its redacted
// text; an empty document becomes nil.
func RedactJSON(doc json.RawMessage) json.RawMessage { return redact.JSON(doc) }
