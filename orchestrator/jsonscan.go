package orchestrator

// maxScanDepth is the nesting depth that jsonEnd scans. Deeper values are left to encoding/json, which has a limit of
// its own.
const maxScanDepth = 500

// jsonEnd returns the index after the JSON value that begins at text[at]. It accepts only compact JSON, without white
// space between the tokens, as rounds are stored; ok is false for everything else, JSON or not.
func jsonEnd(text []byte, at int) (end int, ok bool) { return jsonEndWithin(text, at, maxScanDepth) }

func jsonEndWithin(text []byte, at, depth int) (end int, ok bool) {
	if at >= len(text) || depth == 0 {
		return at, false
	}
	switch c := text[at]; {
	case c == '"':
		return stringEnd(text, at)
	case c == '{':
		return listEnd(text, at, depth, '}')
	case c == '[':
		return listEnd(text, at, depth, ']')
	case c == 't':
		return literalEnd(text, at, "true")
	case c == 'f':
		return literalEnd(text, at, "false")
	case c == 'n':
		return literalEnd(text, at, "null")
	default:
		return numberEnd(text, at)
	}
}

// listEnd is jsonEnd for an object or an array, which ends with shut.
func listEnd(text []byte, at, depth int, shut byte) (end int, ok bool) {
	if at++; at < len(text) && text[at] == shut {
		return at + 1, true
	}
	for {
		if shut == '}' {
			if at, ok = stringEnd(text, at); !ok || at >= len(text) || text[at] != ':' {
				return at, false
			}
			at++
		}
		if at, ok = jsonEndWithin(text, at, depth-1); !ok || at >= len(text) {
			return at, false
		}
		switch at++; text[at-1] {
		case shut:
			return at, true
		case ',':
		default:
			return at, false
		}
	}
}

func literalEnd(text []byte, at int, literal string) (end int, ok bool) {
	end = at + len(literal)
	return end, end <= len(text) && string(text[at:end]) == literal
}

// stringEnd is jsonEnd for a string, with all JSON escapes.
func stringEnd(text []byte, at int) (end int, ok bool) {
	if at >= len(text) || text[at] != '"' {
		return at, false
	}
	for at++; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			return at + 1, true
		case c < ' ':
			return at, false
		case c == '\\':
			if at++; at >= len(text) {
				return at, false
			}
			switch text[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if at++; at >= len(text) || !isHex(text[at]) {
						return at, false
					}
				}
			default:
				return at, false
			}
		}
	}
	return at, false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// numberEnd is jsonEnd for a number.
func numberEnd(text []byte, at int) (end int, ok bool) {
	if at < len(text) && text[at] == '-' {
		at++
	}
	whole := digitsEnd(text, at)
	if whole == at || text[at] == '0' && whole > at+1 {
		return at, false
	}
	at = whole
	if at < len(text) && text[at] == '.' {
		fraction := digitsEnd(text, at+1)
		if fraction == at+1 {
			return at, false
		}
		at = fraction
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		if at++; at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		exponent := digitsEnd(text, at)
		if exponent == at {
			return at, false
		}
		at = exponent
	}
	return at, true
}

func digitsEnd(text []byte, at int) int {
	for at < len(text) && '0' <= text[at] && text[at] <= '9' {
		at++
	}
	return at
}
