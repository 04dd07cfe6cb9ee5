package redact

import "strings"

// token describes secrets with a fixed prefix, which is part of them.
type token struct {
	prefix string
	// rest is the alphabet after the prefix, for least to most bytes; most is 0 for no limit.
	rest        *alphabet
	least, most int
	// shown means that the prefix is no secret, such as the host of a URL, and stays.
	shown bool
}

// tokens are the forms that services publish so that their secrets can be found. The prefixes, alphabets and lengths
// are facts from the rules of gitleaks (config/gitleaks.toml, MIT licence) and from the services' documentation. A form
// is listed only if hardly any other text has it.
var tokens = []token{
	// Source code and packages.
	{prefix: "ghp_", rest: word, least: 36},
	{prefix: "gho_", rest: word, least: 36},
	{prefix: "ghu_", rest: word, least: 36},
	{prefix: "ghs_", rest: dotted, least: 36},
	{prefix: "ghr_", rest: word, least: 36},
	{prefix: "github_pat_", rest: word, least: 50},
	{prefix: "glpat-", rest: dotted, least: 20},
	{prefix: "gldt-", rest: word, least: 20},
	{prefix: "glrt-", rest: dotted, least: 20},
	{prefix: "glft-", rest: word, least: 20},
	{prefix: "glptt-", rest: word, least: 40},
	{prefix: "glcbt-", rest: word, least: 20},
	{prefix: "glimt-", rest: word, least: 20},
	{prefix: "gloas-", rest: word, least: 60},
	{prefix: "glsoat-", rest: word, least: 20},
	{prefix: "glffct-", rest: word, least: 20},
	{prefix: "glagent-", rest: word, least: 40},
	{prefix: "npm_", rest: alnum, least: 36},
	{prefix: "pypi-AgE", rest: word, least: 50},
	{prefix: "rubygems_", rest: hex, least: 48},
	{prefix: "oy2", rest: lower, least: 43, most: 43}, // NuGet
	{prefix: "dckr_pat_", rest: word, least: 20},
	{prefix: "dckr_oat_", rest: word, least: 20},
	{prefix: "AKCp", rest: alnum, least: 69, most: 69}, // Artifactory
	{prefix: "CLOJARS_", rest: alnum, least: 60},
	{prefix: "ATATT3", rest: base64Pad, least: 100}, // Atlassian
	{prefix: "PMAK-", rest: word, least: 50},
	{prefix: "sgp_", rest: word, least: 40},
	{prefix: "squ_", rest: hex, least: 40, most: 40},
	{prefix: "sqp_", rest: hex, least: 40, most: 40},
	{prefix: "sqa_", rest: hex, least: 40, most: 40},
	{prefix: "lin_api_", rest: alnum, least: 40},
	{prefix: "ntn_", rest: alnum, least: 40},
	{prefix: "CCIPAT_", rest: word, least: 40},
	{prefix: "bkua_", rest: alnum, least: 40},
	{prefix: "figd_", rest: word, least: 36},

	// Messages and telephones.
	{prefix: "xoxb-", rest: word, least: 18},
	{prefix: "xoxp-", rest: word, least: 18},
	{prefix: "xoxa-", rest: word, least: 8},
	{prefix: "xoxr-", rest: word, least: 8},
	{prefix: "xoxs-", rest: word, least: 8},
	{prefix: "xoxo-", rest: word, least: 8},
	{prefix: "xoxe-", rest: word, least: 18},
	{prefix: "xoxe.xox", rest: word, least: 18},
	{prefix: "xapp-", rest: word, least: 18},
	{prefix: "hooks.slack.com/services/", rest: path, least: 20, shown: true},
	{prefix: "hooks.slack.com/workflows/", rest: path, least: 20, shown: true},
	{prefix: "hooks.slack.com/triggers/", rest: path, least: 20, shown: true},
	{prefix: "webhook.office.com/webhookb2/", rest: path, least: 36, shown: true},
	{prefix: "discord.com/api/webhooks/", rest: path, least: 30, shown: true},
	{prefix: "discordapp.com/api/webhooks/", rest: path, least: 30, shown: true},
	{prefix: "SG.", rest: dotted, least: 60},
	{prefix: "xkeysib-", rest: word, least: 64},
	{prefix: "key-", rest: hex, least: 32, most: 32}, // Mailgun
	{prefix: "SK", rest: hex, least: 32, most: 32},   // Twilio
	{prefix: "tfp_", rest: dotted, least: 50},

	// Payments and shops.
	{prefix: "sk_live_", rest: alnum, least: 10},
	{prefix: "sk_test_", rest: alnum, least: 10},
	{prefix: "rk_live_", rest: alnum, least: 10},
	{prefix: "rk_test_", rest: alnum, least: 10},
	{prefix: "whsec_", rest: base64Pad, least: 16}, // also that of Standard Webhooks
	{prefix: "sq0atp-", rest: word, least: 22},
	{prefix: "sq0csp-", rest: word, least: 22},
	{prefix: "shpat_", rest: hex, least: 32},
	{prefix: "shpca_", rest: hex, least: 32},
	{prefix: "shppa_", rest: hex, least: 32},
	{prefix: "shpss_", rest: hex, least: 32},
	{prefix: "shippo_live_", rest: hex, least: 40},
	{prefix: "shippo_test_", rest: hex, least: 40},
	{prefix: "EZAK", rest: alnum, least: 54, most: 54},
	{prefix: "EZTK", rest: alnum, least: 54, most: 54},
	{prefix: "FLWSECK", rest: word, least: 13},

	// Clouds and cloud platforms.
	{prefix: "AKIA", rest: base32, least: 16, most: 16},
	{prefix: "ASIA", rest: base32, least: 16, most: 16},
	{prefix: "ABIA", rest: base32, least: 16, most: 16},
	{prefix: "ACCA", rest: base32, least: 16, most: 16},
	{prefix: "ABSK", rest: base64Pad, least: 109},
	{prefix: "AIza", rest: word, least: 35, most: 35},
	{prefix: "GOCSPX-", rest: word, least: 20},
	{prefix: "ya29.", rest: dotted, least: 20},
	{prefix: "LTAI", rest: alnum, least: 20, most: 20}, // Alibaba
	{prefix: "dop_v1_", rest: hex, least: 64},
	{prefix: "doo_v1_", rest: hex, least: 64},
	{prefix: "dor_v1_", rest: hex, least: 64},
	{prefix: "dapi", rest: hex, least: 32, most: 32},
	{prefix: "HRKU-", rest: word, least: 58},
	{prefix: "fo1_", rest: word, least: 43},
	{prefix: "fm2_", rest: base64Pad, least: 100},
	{prefix: "hvs.", rest: word, least: 24},
	{prefix: "hvb.", rest: word, least: 24},
	{prefix: "hvr.", rest: word, least: 24},
	{prefix: "pul-", rest: hex, least: 40, most: 40},
	{prefix: "dp.pt.", rest: alnum, least: 40},
	{prefix: "dp.st.", rest: dotted, least: 40},
	{prefix: "tskey-", rest: word, least: 20},
	{prefix: "nfp_", rest: alnum, least: 36},
	{prefix: "sbp_", rest: hex, least: 40},
	{prefix: "pscale_tkn_", rest: dotted, least: 32},
	{prefix: "pscale_pw_", rest: dotted, least: 32},
	{prefix: "pscale_oauth_", rest: dotted, least: 32},
	{prefix: "sha256~", rest: word, least: 43, most: 43}, // OpenShift
	{prefix: "AGE-SECRET-KEY-1", rest: alnum, least: 50},
	{prefix: "ops_eyJ", rest: base64Pad, least: 100}, // 1Password

	// Monitoring and AI services.
	{prefix: "glc_", rest: base64Pad, least: 32},
	{prefix: "glsa_", rest: word, least: 40},
	{prefix: "dt0c01.", rest: dotted, least: 60},
	{prefix: "NRAK-", rest: alnum, least: 27},
	{prefix: "NRII-", rest: word, least: 32},
	{prefix: "sntrys_", rest: base64Pad, least: 40},
	{prefix: "sntryu_", rest: hex, least: 64},
	{prefix: "sk-", rest: word, least: 32}, // OpenAI, Anthropic and others
	{prefix: "hf_", rest: alnum, least: 34},
	{prefix: "api_org_", rest: alnum, least: 34},
	{prefix: "pplx-", rest: alnum, least: 40},
	{prefix: "CFPAT-", rest: word, least: 40},

	// Hashes of passwords, as crypt and LDAP write them.
	{prefix: "$apr1$", rest: crypt, least: 10},
	{prefix: "$1$", rest: crypt, least: 10},
	{prefix: "$2a$", rest: crypt, least: 10},
	{prefix: "$2b$", rest: crypt, least: 10},
	{prefix: "$2y$", rest: crypt, least: 10},
	{prefix: "$5$", rest: crypt, least: 10},
	{prefix: "$6$", rest: crypt, least: 10},
	{prefix: "$y$", rest: crypt, least: 10},
	{prefix: "$argon2", rest: crypt, least: 10},
	{prefix: "$scrypt$", rest: crypt, least: 10},
	{prefix: "$pbkdf2", rest: crypt, least: 10},
	{prefix: "{SSHA}", rest: base64Pad, least: 10},

	// Hooks of any service.
	{prefix: "hook/", rest: alnum, least: 24, shown: true},
	{prefix: "hooks/", rest: alnum, least: 24, shown: true},
	{prefix: "webhook/", rest: alnum, least: 24, shown: true},
	{prefix: "webhooks/", rest: alnum, least: 24, shown: true},
}

// tokensByFirst maps a first byte to its tokens.
var tokensByFirst = func() (table [256][]token) {
	for _, t := range tokens {
		table[t.prefix[0]] = append(table[t.prefix[0]], t)
	}
	return table
}()

// findBegun finds the secrets with known beginnings: tokens, JSON Web Tokens, and credentials after the name of their
// scheme.
func findBegun(text string, spans []span) []span {
	noWebToken := 0 // end of the searched part without a web token
	for i := 0; i < len(text); i++ {
		c := text[i]
		if tokensByFirst[c] == nil && !schemeInitials[c] && c != 'e' || !begins(text, i) {
			continue
		}
		s, ok := tokenAt(text, i)
		if !ok && c == 'e' && i >= noWebToken {
			s, noWebToken, ok = webTokenAt(text, i)
		}
		if !ok && schemeInitials[c] {
			s, ok = schemeAt(text, i)
		}
		if ok {
			spans = append(spans, s)
			i = s.to - 1
		}
	}
	return spans
}

// tokenAt returns the token that starts at i.
func tokenAt(text string, i int) (span, bool) {
	for _, t := range tokensByFirst[text[i]] {
		if !strings.HasPrefix(text[i:], t.prefix) {
			continue
		}
		rest := i + len(t.prefix)
		within := text
		if t.most > 0 {
			within = text[:min(len(text), rest+t.most+1)]
		}
		end := t.rest.run(within, rest)
		for end-rest < t.least && end+1 < len(within) && (within[end] == '\n' || within[end] == '\r') && t.rest[within[end+1]] {
			end = t.rest.run(within, end+1) // a token in several lines
		}
		if n := end - rest; n < t.least || t.most > 0 && (n > t.most || !t.rest.begins(text, i)) || !ends(text, end) {
			continue
		}
		if t.shown {
			return span{rest, end, mark}, true
		}
		return span{i, end, mark}, true
	}
	return span{}, false
}

// webTokenAt returns the JSON Web Token that starts at i: JSON objects in base64, with dots between them. Without one,
// no token starts before next either.
func webTokenAt(text string, i int) (token span, next int, ok bool) {
	const object = "eyJ" // {" in base64
	if !strings.HasPrefix(text[i:], object) {
		return span{}, i + 1, false
	}
	header := word.run(text, i)
	if header+1 >= len(text) || text[header] != '.' || !word[text[header+1]] {
		return span{}, header, false
	}
	if header-i < 8 {
		return span{}, i + 1, false
	}
	end := dotted.run(text, header)
	return span{i, end, mark}, end, true
}

// schemes are the authorization schemes that precede credentials, in lower case.
var schemes = []string{"bearer", "basic", "auth plain", "auth login", "auth xoauth2", "sharedkeylite", "sharedkey", "sharedaccesssignature"}

var schemeInitials = alphabetOf("aAbBsS")

// schemeAt returns the credentials after the scheme at i. Bearer and basic are also ordinary words, so the text after
// them has to look like credentials.
func schemeAt(text string, i int) (span, bool) {
	for _, scheme := range schemes {
		end := i + len(scheme)
		if end >= len(text) || !strings.EqualFold(text[i:end], scheme) {
			continue
		}
		from := skipSpace(text, skipBlanks(text, end))
		if from == end {
			return span{}, false
		}
		to := from
		for to < len(text) && text[to] > ' ' && strings.IndexByte(`"',;<>\`, text[to]) < 0 {
			to++
		}
		value := text[from:to]
		var credentials bool
		switch scheme {
		case "bearer":
			credentials = likelySecret(value)
		case "basic":
			credentials = len(value) >= 16 && strings.TrimRight(value[base64.run(value, 0):], "=") == ""
		case "auth plain", "auth login", "auth xoauth2":
			credentials = likelySecret(value) || strings.HasSuffix(value, "=")
		case "sharedaccesssignature":
			credentials = strings.Contains(value, "=")
		default:
			credentials = strings.Contains(value, ":")
		}
		if credentials && !strings.HasPrefix(value, mark) {
			return span{from, to, mark}, true
		}
		return span{}, false
	}
	return span{}, false
}

// likelySecret distinguishes a possible secret from a word of a sentence.
func likelySecret(value string) bool {
	small, large, figures := kinds(value)
	return len(value) >= 20 || len(value) >= 6 && (small || large) && figures
}

// skipBlanks returns the end of the blanks at i.
func skipBlanks(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	return i
}
