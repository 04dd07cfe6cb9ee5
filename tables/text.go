package tables

import (
	"strconv"
	"strings"
)

// maxTextUnits is the limit of one text property in UTF-16 units.
const maxTextUnits = maxValue / 2

// PutText stores a text of any length as the properties name, name2, name3 and so on, each within the limit of a
// property. It removes the remaining parts of a longer text from props. Text reads it back. Do not use the names of the
// parts otherwise. An entity of 1 MiB has room for about 520,000 UTF-16 units in all.
func PutText(props map[string]any, name, text string) {
	part := 1
	for {
		n := textPrefix(text)
		props[partName(name, part)] = text[:n]
		text = text[n:]
		part++
		if text == "" {
			break
		}
	}
	for ; ; part++ {
		if _, ok := props[partName(name, part)]; !ok {
			return
		}
		delete(props, partName(name, part))
	}
}

// Text returns the text that PutText stored, "" without one.
func Text(e Entity, name string) string {
	first := e.String(name)
	second, more := e.Properties[partName(name, 2)].(string)
	if !more {
		return first
	}
	var b strings.Builder
	b.WriteString(first)
	for part := 3; more; part++ {
		b.WriteString(second)
		second, more = e.Properties[partName(name, part)].(string)
	}
	return b.String()
}

// textPrefix is the length in bytes of the longest prefix that fits one property and splits no character.
func textPrefix(text string) int {
	if len(text) <= maxTextUnits {
		return len(text)
	}
	units := 0
	for i, r := range text {
		n := 1
		if r > 0xffff {
			n = 2
		}
		if units+n > maxTextUnits {
			return i
		}
		units += n
	}
	return len(text)
}

func partName(name string, part int) string {
	if part == 1 {
		return name
	}
	return name + strconv.Itoa(part)
}
