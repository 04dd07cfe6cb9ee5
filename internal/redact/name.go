package redact

import (
	"slices"
	"strings"
)

// secretWords make a name that contains one of them look secret; so does being one of secretNames. All are in lower
// case without punctuation, like the results of plainName.
var (
	secretWords = []string{
		"secret", "password", "passwd", "passphrase", "passcode", "privatekey", "accountkey", "accesskey", "sharedkey",
		"storagekey", "apikey", "signingkey", "encryptionkey", "masterkey", "hostkey", "functionkey", "functionskey", "hmackey",
		"primarykey", "secondarykey", "subscriptionkey", "instrumentationkey", "saskey", "clientkeydata", "connectionstring",
		"connstr", "token", "authorization", "credential", "signature", "kennwort", "passwort", "motdepasse", "contrasena", "wachtwoord",
	}
	secretNames = []string{
		"sas", "sig", "pwd", "pass", "auth", "cookie", "setcookie", "jwt", "pem", "pfx", "userpwd", "userpass", "dbpass",
		"dbpwd", "azurewebjobsstorage", "pw", "pin", "otp", "csrf", "xauth", "sessionid", "passphrases", "jsessionid", "phpsessid", "senha",
	}

	// leastOf are the names of values that are secret if they look random and have at least this many bytes: of keys, and
	// of the private members of JSON Web Keys.
	leastOf = map[string]int{"key": 10, "k": 20, "d": 20, "p": 20, "q": 20, "dp": 20, "dq": 20, "qi": 20}

	// plainEndings mark names that describe a secret instead of naming one.
	plainEndings = []string{
		"name", "names", "version", "versions", "id", "ids", "identifier", "type", "kind", "count", "length", "size", "uri",
		"url", "endpoint", "expiry", "expires", "expireson", "expiresat", "expiresin", "status", "slot", "algorithm", "path",
		"ref", "reference", "policy", "audience", "issuer", "lifetime", "scope", "scopes", "enabled", "required", "thumbprint",
		"fingerprint", "ttl",
	}

	// plainWords contain a secret word by accident.
	plainWords = []string{"secretary", "secretariat", "tokenizer", "tokenization", "passwordless"}
)

// maxName bounds the checked part of a name, in bytes: of a longer one, the end counts.
const maxName = 64

// secretName reports whether values of this name are considered secret.
func secretName(name string) bool {
	if len(name) < 2 {
		return false
	}
	plain := plainName(name)
	return slices.Contains(secretNames, plain) || !harmless(plain) &&
		slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(plain, word) })
}

// endsSecret reports whether the end of a secret-looking name makes it secret, as in accessToken but not in tokensLeft.
// Only then is a number secret.
func endsSecret(plain string) bool {
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.HasSuffix(plain, word) }) ||
		slices.Contains(secretNames, plain)
}

// harmless reports whether a plain name describes a secret without being one.
func harmless(plain string) bool {
	return slices.ContainsFunc(plainEndings, func(ending string) bool { return strings.HasSuffix(plain, ending) }) ||
		slices.ContainsFunc(plainWords, func(word string) bool { return strings.Contains(plain, word) })
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

// headerNames are names that precede a colon and a secret even in a sentence. Other names precede a colon in error
// texts, too.
var headerNames = []string{
	"authorization", "proxyauthorization", "xfunctionskey", "apikey", "xapikey", "ocpapimsubscriptionkey", "aegsaskey",
	"password", "passwd", "pwd", "passphrase", "accountkey", "connectionstring", "cookie", "setcookie",
}

// compound reports whether a name has several words, like X-Auth-Token, client_secret and clientSecret.
func compound(name string) bool {
	for i := 1; i < len(name); i++ {
		if name[i] == '-' || name[i] == '_' || name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z' {
			return true
		}
	}
	return false
}
