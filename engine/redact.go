package engine

import (
	"regexp"
	"slices"
	"strings"
)

// redacted replaces a secret.
const redacted = "[redacted]"

// Redact replaces secrets in a text for people or logs by [redacted]: values of connection strings and signed URLs,
// credentials of authorization headers and of URLs, JSON Web Tokens, private keys in PEM, storage account keys, and the
// values of members and assignments with secret-looking names (see RedactJSON). It is a second line of defence: secrets
// must not be put into such texts in the first place.
func Redact(text string) string {
	for _, rule := range redactions {
		if strings.Contains(text, rule.trigger) {
			text = rule.apply(text)
		}
	}
	return text
}

// redaction describes one kind of secret.
type redaction struct {
	// trigger is a text that every match contains. Looking for it first is cheap, and most texts have no secret.
	trigger string
	pattern *regexp.Regexp
	// named says that group 2 is a name, and that a match counts only if the name looks secret.
	named bool
	// with replaces the match, as in regexp's Expand.
	with string
}

func (r redaction) apply(text string) string {
	if !r.named {
		return r.pattern.ReplaceAllString(text, r.with)
	}
	return r.pattern.ReplaceAllStringFunc(text, func(match string) string {
		groups := r.pattern.FindStringSubmatchIndex(match)
		if groups == nil || !secretName(match[groups[4]:groups[5]]) {
			return match
		}
		return string(r.pattern.ExpandString(nil, r.with, match, groups))
	})
}

// redactions apply in this order, because whole credentials can be the values of assignments and members.
var redactions = []redaction{
	{ // a private key in PEM, possibly cut
		trigger: "PRIVATE KEY-----",
		pattern: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
		with:    redacted,
	},
	{ // a JSON Web Token: its header is a JSON object in base64
		trigger: "eyJ",
		pattern: regexp.MustCompile(`\beyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*)*`),
		with:    redacted,
	},
	{ // a shared access signature, as a connection string and as a header
		trigger: "=",
		pattern: regexp.MustCompile(`(?i)\b(SharedAccessSignature\s*[= ]\s*)[^;\s"']+`),
		with:    "${1}" + redacted,
	},
	{ // credentials by their scheme; 16 characters, because "basic" is a word as well
		trigger: " ",
		pattern: regexp.MustCompile(`(?i)\b(bearer\s+)[^\s"',;]+|\b(basic\s+)[a-z0-9+/]{16,}=*|\b(sharedkey(?:lite)?\s+)[^\s:"']+:[a-z0-9+/=]+`),
		with:    "${1}${2}${3}" + redacted,
	},
	{ // header lines and the like
		trigger: ":",
		pattern: regexp.MustCompile(`(?i)\b((?:(?:proxy-)?authorization|x-functions-key|(?:x-)?api-key|ocp-apim-subscription-key|password|pwd|passphrase|accountkey|connectionstring)[ \t]*:[ \t]*(?:(?:bearer|basic|digest|negotiate|sharedkey(?:lite)?)\s+)?)[^\s"',;]+|\b((?:set-)?cookie[ \t]*:[ \t]*)[^\r\n]+`),
		with:    "${1}${2}" + redacted,
	},
	{ // the password of a URL
		trigger: "://",
		pattern: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+@`),
		with:    "${1}" + redacted + "@",
	},
	{ // the function key of a URL
		trigger: "code=",
		pattern: regexp.MustCompile(`([?&]code=)[^&\s"'#;]+`),
		with:    "${1}" + redacted,
	},
	{ // a storage account key: 64 bytes in base64
		trigger: "==",
		pattern: regexp.MustCompile(`(^|[^A-Za-z0-9+/=])[A-Za-z0-9+/]{86}==`),
		with:    "${1}" + redacted,
	},
	{ // a member of a JSON text
		trigger: `"`,
		pattern: regexp.MustCompile(`(?s)("([^"\\]{1,64})"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|-?[0-9][0-9.eE+-]*)`),
		named:   true,
		with:    `${1}"` + redacted + `"`,
	},
	{ // a member of a JSON text in a JSON string
		trigger: `\"`,
		pattern: regexp.MustCompile(`(\\"([^"\\]{1,64})\\"\s*:\s*)(?:\\"(?:[^"\\]|\\\\(?:\\.|[^\\"]))*\\"|-?[0-9][0-9.eE+-]*)`),
		named:   true,
		with:    `${1}\"` + redacted + `\"`,
	},
	{ // an assignment of a connection string, a form or a command line
		trigger: "=",
		pattern: regexp.MustCompile(`(\b([A-Za-z][\w.-]*)\s*=\s*)(?:"[^"]*"?|'[^']*'?|(?:[^\s;&"'\\]|\\[^"])+)`),
		named:   true,
		with:    "${1}" + redacted,
	},
}

// secretWords make a name that contains one of them look secret; so does being one of secretNames. Both are in lower
// case without punctuation, as plainName gives names.
var (
	secretWords = []string{
		"secret", "password", "passwd", "passphrase", "privatekey", "accountkey", "accesskey", "sharedkey", "storagekey",
		"apikey", "signingkey", "encryptionkey", "masterkey", "hostkey", "functionkey", "functionskey", "hmackey", "primarykey",
		"secondarykey", "subscriptionkey", "connectionstring", "connstr", "token", "authorization", "credential",
		"sharedaccesssignature", "sassignature",
	}
	secretNames = []string{"sas", "sig", "pwd", "pass", "auth", "cookie", "setcookie", "jwt", "pem", "pfx", "azurewebjobsstorage"}

	// plainEndings make a name that would look secret say something about the secret instead.
	plainEndings = []string{
		"name", "names", "version", "versions", "id", "ids", "identifier", "type", "kind", "count", "length", "size", "uri",
		"url", "endpoint", "expiry", "expires", "expireson", "expiresat", "expiresin", "status", "slot", "algorithm",
	}
)

// secretName reports whether values of this name are considered secret.
func secretName(name string) bool {
	plain := plainName(name)
	if harmless(plain) {
		return false
	}
	for _, word := range secretWords {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return slices.Contains(secretNames, plain)
}

// harmless reports whether a plain name describes a secret without being one.
func harmless(plain string) bool {
	for _, ending := range plainEndings {
		if strings.HasSuffix(plain, ending) {
			return true
		}
	}
	return false
}

// plainName returns a name without case and punctuation: client_secret, Client-Secret and clientSecret become the same.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r > 0x7f:
			return r
		}
		return -1
	}, name)
}
