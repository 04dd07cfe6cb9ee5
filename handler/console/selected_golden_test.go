package console

import (
	"net/url"
	"strings"
)

// selectedPages are the page that asks about what was selected, whatever the names are, and a list that has everything selected.
func selectedPages() map[string]shown {
	some := []string{selected{"hmac", "m1-20261126T120000.000000Z"}.Value(), selected{"tls", "m/2%2F"}.Value(), selected{"tls", "m/2%2F"}.Value()}
	many := make([]string, 0, maxSelected)
	for n := range maxSelected {
		many = append(many, selected{"hmac", Text(strings.Repeat("m", n+1))}.Value())
	}
	chosen := func(a answers, action string, rows []string, status int) shown {
		return at(a, selectedPath, status).sends(url.Values{"action": {action}, "row": rows, "filter": {"engine=hmac&status=Pending"}})
	}
	return map[string]shown{
		"selected_empty":   chosen(typical(), "retry", nil, 400),
		"selected_typical": chosen(typical(), "retry", some, 200),
		"selected_expire":  chosen(typical(), "expire", some[:1], 200),
		"selected_many":    chosen(typical(), "retry", many, 200),
		"selected_reader":  chosen(typical().with(answers{"/api/me": reader()}), "retry", some, 200),
		"selected_hostile": chosen(hostile(), "retry", []string{selected{evil, turning}.Value(), selected{"hm/../ac", evil + "%2F.."}.Value()}, 200),
		"letters_selected": at(typical(), lettersPath+"?engine=hmac&select=page&continuationToken=x", 200),
	}
}
