// Package redact removes secrets from what people and logs get to see, and from what is stored beside the payloads: error
// texts, reasons, notes, receivers' answers. Everything that comes from outside and is not itself the data that an
// orchestration needs goes through here before it is stored or logged.
//
// A secret becomes [redacted]. It is known by its form (the tokens of well-known services, JSON Web Tokens, private keys,
// the keys of Azure), by its place (the password of a URL or of a data source name, the value of an authorization header)
// or by the name before it (password=, "client_secret":, AccountKey=, "the password is"). The rules see a text as it is,
// and again without each level of its escapes. It is a second line of defence: a secret that nothing marks as one stays, so
// secrets must not be put into such texts in the first place.
//
// The package promises:
//   - ids, hashes, GUIDs, paths of resources and base64 of ordinary data stay as they are, byte for byte;
//   - what was redacted once does not change when it is redacted again;
//   - the work is linear in the length of the text, whatever the text is;
//   - valid UTF-8 stays valid, and a JSON document stays one.
//
// Redaction happens when a text is made, never when it is read back, so that rules which are added later do not change
// what a replay sees.
//
// It owns no storage keys.
package redact
