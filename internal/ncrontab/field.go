package ncrontab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// field is a field of an expression, as NCrontab (github.com/atifaziz/NCrontab, CrontabFieldImpl.cs) defines it: the
// Functions host reads schedules with that library.
type field struct {
	name        string
	first, last int
	names       []string
}

var (
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	fields     = []field{{"second", 0, 59, nil}, {"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day", 1, 31, nil}, {"month", 1, 12, monthNames}, {"weekday", 0, 6, dayNames}}
)

// normal returns an expression with the values of each field, so that another library reads it the same way. Forms that
// the host accepts with a different meaning than other dialects of cron are refused.
func normal(text string) (string, error) {
	tokens := strings.Split(text, " ")
	tokens = slices.DeleteFunc(tokens, func(token string) bool { return token == "" })
	skipped := len(fields) - len(tokens)
	if skipped != 0 && skipped != 1 {
		return "", fmt.Errorf("it has %d fields, separated by spaces", len(tokens))
	}
	for i, token := range tokens {
		values, err := fields[i+skipped].parse(token)
		if err != nil {
			return "", fmt.Errorf("%s %.64q: %w", fields[i+skipped].name, token, err)
		}
		tokens[i] = values
	}
	return strings.Join(tokens, " "), nil
}

// parse returns the values of a field as a list, or * for all of them.
func (f field) parse(text string) (string, error) {
	set := make([]bool, f.last+1)
	for part := range strings.SplitSeq(text, ",") {
		if err := f.add(set, part); err != nil {
			return "", err
		}
	}
	var values []string
	for n := f.first; n <= f.last; n++ {
		if set[n] {
			values = append(values, strconv.Itoa(n))
		}
	}
	if len(values) == f.last-f.first+1 {
		return "*", nil
	}
	return strings.Join(values, ","), nil
}

// add adds the values of a part of a list: *, a value or a range, each with or without a step.
func (f field) add(set []bool, text string) (err error) {
	text, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = number(stepText); err != nil || step == 0 {
			return fmt.Errorf("the step %.32q is no number of 1 or more", stepText)
		}
	}
	first, last := f.first, f.last
	if text != "*" {
		from, to, isRange := strings.Cut(text, "-")
		if first, err = f.value(from); err != nil {
			return err
		}
		switch {
		case isRange:
			if last, err = f.value(to); err != nil {
				return err
			}
		case !stepped:
			last = first
		}
		if first > last {
			return fmt.Errorf("the range ends before it begins, and the Functions host swaps its ends: write %s-%s, or a list", to, from)
		}
	}
	for n := first; n <= last; n += step {
		set[n] = true
	}
	return nil
}

// value reads a number or the beginning of a name.
func (f field) value(text string) (int, error) {
	if n, err := number(text); err == nil {
		if n < f.first || n > f.last {
			return 0, fmt.Errorf("%d is not one of %d to %d", n, f.first, f.last)
		}
		return n, nil
	}
	found := -1
	for i, name := range f.names {
		if text == "" || len(text) > len(name) || !strings.EqualFold(name[:len(text)], text) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("%q is the beginning of %s and of %s", text, f.names[found], name)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("%.32q is neither a number of %d to %d nor a name", text, f.first, f.last)
	}
	return found + f.first, nil
}

// number reads digits alone.
func number(text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}
