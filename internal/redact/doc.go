// Package redact removes secrets from displayed, logged and stored texts other than payloads: error texts, reasons,
// notes, receivers' answers. Every outside text that is not itself the data of an orchestration is redacted before it
// is stored or logged.
//
// A secret becomes [redacted]. Rules recognize it by its form (the tokens of well-known services, JSON Web Tokens,
// private keys, the keys of Azure), by its place (the password of a URL or of a data source name, the value of an
// authorization header) or by the name before it (password=, "client_secret":, AccountKey=, "the password is"). They
// are applied to the text as it is, and again without each level of its escapes. Redaction is a second line of defence:
// an unmarked secret stays, so do not put secrets into such texts in the first place.
//
// Promises:
//   - ids, hashes, GUIDs, paths of resources and base64 of ordinary data stay as they are, byte for byte;
//   - redacting a redacted text changes nothing;
//   - the work is linear in the length of any text;
//   - valid UTF-8 stays valid, and a JSON document stays one.
//
// A text is redacted when it is made, never when it is read back, so that later rules do not change a replay.
//
// The package owns no storage keys.
package redact
