package redact

import "strings"

// marked describes secrets with a fixed text in their middle, and of a fixed length.
type marked struct {
	marker string
	// before is the maximum number of bytes before the marker, a quarter of it the minimum; after is the number of bytes
	// after it. longest is the maximum number after it if that is above after+2. All bytes are of the alphabet.
	bytes                  *alphabet
	before, after, longest int
	// padding is the end of the secret.
	padding string
}

// markedSecrets are keys of Azure, which contain the name of their service, and others. The signatures and lengths are
// facts from the rules of gitleaks and of Microsoft's security-utilities (both MIT licence).
var markedSecrets = []marked{
	{marker: "Q~", bytes: unreserved, before: 4, after: 31, longest: 36}, // client secrets of Entra ID
	{marker: "AzFu", bytes: word, before: 44, after: 6, padding: "=="},   // Functions
	{marker: "AzSe", bytes: alnum, before: 42, after: 6},                 // AI Search
	{marker: "AzCa", bytes: base64, before: 33, after: 6, padding: "="},  // Cache for Redis
	{marker: "+ACR", bytes: base64, before: 42, after: 6},                // Container Registry
	{marker: "+ASb", bytes: base64, before: 33, after: 6, padding: "="},  // Service Bus
	{marker: "+AEh", bytes: base64, before: 33, after: 6, padding: "="},  // Event Hubs
	{marker: "+ARm", bytes: base64, before: 33, after: 6, padding: "="},  // Relay
	{marker: "AIoT", bytes: base64, before: 33, after: 6, padding: "="},  // IoT Hub
	{marker: "AZEG", bytes: base64, before: 33, after: 6, padding: "="},  // Event Grid
	{marker: "JQQJ99", bytes: base64, before: 52, after: 26},             // newer keys of many services
	{marker: ".atlasv1.", bytes: word, before: 14, after: 60, longest: 70},
}

// findMarked finds the secrets with a known middle or end.
func findMarked(text string, spans []span) []span {
	for _, m := range markedSecrets {
		for at, next := 0, 0; ; at = next {
			i := strings.Index(text[at:], m.marker)
			if i < 0 {
				break
			}
			next = at + i + 1
			if s, ok := m.around(text, at+i); ok {
				spans = append(spans, s)
			}
		}
	}
	return findAccountKeys(text, findBotTokens(text, findShapes(text, spans)))
}

// around returns the secret whose marker starts at i.
func (m marked) around(text string, i int) (span, bool) {
	from, rest := i, i+len(m.marker)
	for from > 0 && i-from < m.before && m.bytes[text[from-1]] {
		from--
	}
	if i-from < m.before/4 || rest+m.after > len(text) || !m.bytes.begins(text, from) {
		return span{}, false
	}
	longest := max(m.after+2, m.longest)
	// One more byte shows that the secret would be too long.
	to := m.bytes.run(text[:min(len(text), rest+longest+1)], rest)
	if n := to - rest; n < m.after || n > longest || !strings.HasPrefix(text[to:], m.padding) {
		return span{}, false
	}
	return span{from, to + len(m.padding), mark}, true
}

// findShapes finds the secrets with only a known length and alphabet: access keys of AWS, and tokens of Azure DevOps.
// Paths and names of that length change between letters of both cases and digits less often.
func findShapes(text string, spans []span) []span {
	const awsKey, leastChanges, devOpsToken = 40, 13, 52
	for i := 0; i < len(text); i++ {
		from := i
		i = base64Pad.run(text, from)
		switch value := text[from:i]; len(value) {
		case awsKey:
			if base64.run(value, 0) == awsKey && changes(value) >= leastChanges && len(unwrapped(value)) < awsKey*3/4 {
				spans = append(spans, span{from, i, mark})
			}
		case devOpsToken:
			if base32Lower.run(value, 0) == devOpsToken && strings.ContainsAny(value, "234567") {
				spans = append(spans, span{from, i, mark})
			}
		}
	}
	return spans
}

// changes returns how often a value with letters of both cases and digits changes between them; 0 for any other.
func changes(value string) int {
	if small, large, figures := kinds(value); !small || !large || !figures {
		return 0
	}
	n := 0
	for i := 1; i < len(value); i++ {
		a, b := value[i-1:i], value[i:i+1]
		a1, a2, a3 := kinds(a)
		b1, b2, b3 := kinds(b)
		if a1 != b1 || a2 != b2 || a3 != b3 {
			n++
		}
	}
	return n
}

// findAccountKeys finds 64 bytes in base64, like the keys of storage accounts and of Cosmos DB. Digests of npm packages
// have the same form, after their algorithm.
func findAccountKeys(text string, spans []span) []span {
	const length = 86
	for at := 0; ; {
		i := strings.Index(text[at:], "==")
		if i < 0 {
			return spans
		}
		end := at + i
		from := end - length
		at = end + 2
		if from < 0 || base64.run(text[from:end], 0) != length {
			continue
		}
		if !base64.begins(text, from) || strings.HasSuffix(text[:from], "sha512-") {
			continue
		}
		spans = append(spans, span{from, at, mark})
	}
}

// findBotTokens finds the tokens of Telegram: a number, which stays, a colon, and about 35 characters that start with
// AA.
func findBotTokens(text string, spans []span) []span {
	const begin, least, leastNumber = ":AA", 30, 8
	for at := 0; ; {
		i := strings.Index(text[at:], begin)
		if i < 0 {
			return spans
		}
		colon := at + i
		at = word.run(text, colon+1)
		number := text[max(0, colon-leastNumber):colon]
		if at-colon > least && len(number) == leastNumber && digits.run(number, 0) == leastNumber {
			spans = append(spans, span{colon + 1, at, mark})
		}
	}
}
