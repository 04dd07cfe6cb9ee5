package sqlsource

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// statement collects a text and the values of its placeholders.
type statement struct {
	dialect *dialect
	text    strings.Builder
	args    []any
	types   []string // of the columns with which args are compared, or of the values themselves
}

func (s *statement) add(parts ...string) {
	for _, p := range parts {
		s.text.WriteString(p)
	}
}

// value adds a placeholder for a value.
func (s *statement) value(v any) {
	s.args, s.types = append(s.args, v), append(s.types, fmt.Sprintf("%T", v))
	s.add(s.dialect.placeholder(len(s.args)))
}

// compared adds a placeholder for the text of a value that is compared with a column.
func (s *statement) compared(text string, c column) {
	s.args, s.types = append(s.args, s.dialect.argument(text, c)), append(s.types, strings.ToLower(c.typ))
	s.add(s.dialect.bind(s.dialect.placeholder(len(s.args)), text, c))
}

// named adds a query in which ":name" is a parameter, outside of strings, quoted names and comments.
func (s *statement) named(query string, params map[string]any) error {
	used := map[string]bool{}
	for i := 0; i < len(query); {
		if end := s.dialect.skip(query, i); end > i {
			s.add(query[i:end])
			i = end
			continue
		}
		name := parameterAt(query, i)
		if name == "" {
			s.add(query[i : i+1])
			i++
			continue
		}
		v, ok := params[name]
		if !ok {
			return fmt.Errorf("the query has :%s, but there is no such parameter", name)
		}
		s.value(native(v))
		used[name] = true
		i += 1 + len(name)
	}
	for name := range params {
		if !used[name] {
			return fmt.Errorf("the parameter %s is not in the query", name)
		}
	}
	return nil
}

// skip returns the end of the string, quoted name, comment or cast that starts at i, or i.
func (d *dialect) skip(q string, i int) int {
	rest := q[i:]
	switch {
	case strings.HasPrefix(rest, "::"):
		return i + 2
	case strings.HasPrefix(rest, "--"):
		return i + until(rest, 2, "\n")
	case strings.HasPrefix(rest, "/*"):
		return i + until(rest, 2, "*/")
	case rest[0] == '\'' && d.backslash:
		for k := 1; k < len(rest); k++ {
			switch rest[k] {
			case '\\':
				k++
			case '\'':
				return i + k + 1
			}
		}
		return len(q)
	case rest[0] == '\'', rest[0] == '"', rest[0] == '`':
		return i + until(rest, 1, rest[:1])
	case rest[0] == '[' && d.quotes[1] == "]":
		return i + until(rest, 1, "]")
	}
	return i
}

func until(text string, from int, end string) int {
	if at := strings.Index(text[from:], end); at >= 0 {
		return from + at + len(end)
	}
	return len(text)
}

// parameterAt returns the name of the parameter that starts at i, "" without one.
func parameterAt(q string, i int) string {
	if q[i] != ':' {
		return ""
	}
	end := i + 1
	for end < len(q) && (q[end] == '_' || 'a' <= q[end]|0x20 && q[end]|0x20 <= 'z' || end > i+1 && '0' <= q[end] && q[end] <= '9') {
		end++
	}
	return q[i+1 : end]
}

// native converts a whole number from JSON's float.
func native(v any) any {
	switch n := v.(type) {
	case json.Number:
		if whole, err := n.Int64(); err == nil {
			return whole
		}
		return n.String()
	case float64:
		if whole := int64(n); float64(whole) == n {
			return whole
		}
	}
	return v
}

// query is one reading of the object.
type query struct {
	columns []string // expressions; none means all as they are
	where   []func(*statement)
	order   []string
	limit   int
}

// build returns a statement of a query over the configured object and its filters.
func (s *Source) build(q query, where ...func(*statement)) (string, []any, error) {
	st, err := s.statement(q, where...)
	if err != nil {
		return "", nil, err
	}
	return st.text.String(), st.args, nil
}

func (s *Source) statement(q query, where ...func(*statement)) (*statement, error) {
	st := &statement{dialect: s.dialect}
	st.add("SELECT ")
	if q.limit > 0 && s.dialect.top {
		st.add("TOP (")
		st.value(q.limit)
		st.add(") ")
	}
	if len(q.columns) == 0 {
		st.add("q.*")
	}
	st.add(strings.Join(q.columns, ", "), " FROM ")
	if s.config.Table != "" {
		var quoted []string
		for _, part := range tableParts(s.config.Table) {
			quoted = append(quoted, s.dialect.quote(part))
		}
		st.add(strings.Join(quoted, "."))
	} else {
		st.add("(")
		if err := st.named(s.config.Query, s.config.Params); err != nil {
			return nil, err
		}
		// A comment at the end of the query must not hide the parenthesis.
		st.add("\n)")
	}
	st.add(" q")
	for i, condition := range slices.Concat(q.where, where) {
		if i == 0 {
			st.add(" WHERE ")
		} else {
			st.add(" AND ")
		}
		condition(st)
	}
	if len(q.order) > 0 {
		st.add(" ORDER BY ", strings.Join(q.order, ", "))
	}
	if q.limit > 0 && !s.dialect.top {
		st.add(" LIMIT ")
		st.value(q.limit)
	}
	return st, nil
}
