package bicep

import (
	"fmt"
	"strconv"
	"strings"

	sitter "github.com/tree-sitter/go-tree-sitter"
)

// eval returns the value of an expression.
func (s *scope) eval(n *sitter.Node) (any, error) {
	switch n.Kind() {
	case "string":
		return s.stringValue(n)
	case "number":
		number, err := strconv.ParseInt(s.text(n), 10, 64)
		if err != nil {
			return nil, s.errorf(n, "%v", err)
		}
		return number, nil
	case "boolean":
		return s.text(n) == "true", nil
	case "null":
		return nil, nil
	case "identifier":
		return s.symbol(s.text(n), n)
	case "parenthesized_expression":
		return s.eval(children(n)[0])
	case "array":
		return s.array(n)
	case "object":
		return s.object(n)
	case "for_statement":
		return s.loop(n, s.eval)
	case "ternary_expression":
		return s.ternary(n)
	case "unary_expression":
		return s.unary(n)
	case "binary_expression":
		return s.binary(n)
	case "member_expression":
		return s.member(n)
	case "subscript_expression":
		return s.subscript(n)
	case "call_expression":
		return s.call(n)
	}
	return nil, s.errorf(n, "a %s is nothing that this reader knows", n.Kind())
}

// stringValue returns a string with its interpolations. If one of them is unknown, so is the string.
func (s *scope) stringValue(n *sitter.Node) (any, error) {
	var out strings.Builder
	open := false
	for _, part := range children(n) {
		switch part.Kind() {
		case "string_content":
			out.WriteString(strings.NewReplacer(`\'`, `'`, `\\`, `\`, `\n`, "\n", `\$`, `$`).Replace(s.text(part)))
		case "escape_sequence":
			out.WriteString(strings.TrimPrefix(s.text(part), `\`))
		case "interpolation":
			value, err := s.eval(children(part)[0])
			if err != nil {
				return nil, err
			}
			open = open || unknown(value)
			fmt.Fprint(&out, value)
		default:
			return nil, s.errorf(part, "a %s in a string is nothing that this reader knows", part.Kind())
		}
	}
	if open {
		return Unknown{out.String()}, nil
	}
	return out.String(), nil
}

func (s *scope) array(n *sitter.Node) (any, error) {
	items := []any{}
	for _, c := range children(n) {
		value, err := s.eval(c)
		if err != nil {
			return nil, err
		}
		items = append(items, value)
	}
	return items, nil
}

func (s *scope) object(n *sitter.Node) (any, error) {
	out := newObject()
	for _, property := range children(n) {
		parts := children(property)
		if property.Kind() != "object_property" || len(parts) != 2 {
			return nil, s.errorf(property, "a %s is nothing that this reader knows in an object", property.Kind())
		}
		key := s.text(parts[0])
		if parts[0].Kind() == "string" {
			value, err := s.stringValue(parts[0])
			if err != nil {
				return nil, err
			}
			key = fmt.Sprint(value)
		}
		if _, twice := out.Values[key]; twice {
			return nil, s.errorf(property, "the member %s is there twice", key)
		}
		value, err := s.eval(parts[1])
		if err != nil {
			return nil, err
		}
		out.set(key, value, s.line(property))
	}
	return out, nil
}

// loop calls a function for each item of a collection. The result is unknown if the collection is.
func (s *scope) loop(n *sitter.Node, do func(body *sitter.Node) (any, error)) (any, error) {
	parts := children(n)
	names := []string{s.text(parts[0])}
	if parts[0].Kind() == "for_loop_parameters" {
		names = nil
		for _, c := range children(parts[0]) {
			names = append(names, s.text(c))
		}
	}
	over, err := s.eval(parts[1])
	if err != nil {
		return nil, err
	}
	items, ok := over.([]any)
	if !ok {
		return Unknown{s.text(n)}, nil
	}
	results := []any{}
	for i, item := range items {
		local := map[string]any{names[0]: item}
		if len(names) > 1 {
			local[names[1]] = int64(i)
		}
		s.locals = append(s.locals, local)
		value, err := do(n.ChildByFieldName("body"))
		s.locals = s.locals[:len(s.locals)-1]
		if err != nil {
			return nil, err
		}
		results = append(results, value)
	}
	return results, nil
}

func (s *scope) ternary(n *sitter.Node) (any, error) {
	condition, err := s.eval(n.ChildByFieldName("condition"))
	if err != nil {
		return nil, err
	}
	yes, err := s.eval(n.ChildByFieldName("consequence"))
	if err != nil {
		return nil, err
	}
	no, err := s.eval(n.ChildByFieldName("alternative"))
	if err != nil {
		return nil, err
	}
	switch condition {
	case true:
		return yes, nil
	case false:
		return no, nil
	}
	return Unknown{s.text(n)}, nil
}

func (s *scope) unary(n *sitter.Node) (any, error) {
	value, err := s.eval(n.ChildByFieldName("argument"))
	if err != nil {
		return nil, err
	}
	if b, ok := value.(bool); ok && strings.HasPrefix(s.text(n), "!") {
		return !b, nil
	}
	return Unknown{s.text(n)}, nil
}

func (s *scope) binary(n *sitter.Node) (any, error) {
	left, err := s.eval(n.ChildByFieldName("left"))
	if err != nil {
		return nil, err
	}
	right, err := s.eval(n.ChildByFieldName("right"))
	if err != nil {
		return nil, err
	}
	operator := s.text(n.ChildByFieldName("operator"))
	if operator == "??" {
		if left == nil {
			return right, nil
		}
		return left, nil
	}
	if unknown(left) || unknown(right) {
		return Unknown{s.text(n)}, nil
	}
	switch operator {
	case "==":
		return left == right, nil
	case "!=":
		return left != right, nil
	case "&&":
		return left == true && right == true, nil
	case "||":
		return left == true || right == true, nil
	}
	return nil, s.errorf(n, "the operator %s is nothing that this reader knows", operator)
}

func unknown(value any) bool {
	switch value.(type) {
	case Unknown, partial:
		return true
	}
	return false
}

// member returns a member of an object, a resource or a module.
func (s *scope) member(n *sitter.Node) (any, error) {
	of, err := s.eval(n.ChildByFieldName("object"))
	if err != nil {
		return nil, err
	}
	name := s.text(n.ChildByFieldName("property"))
	switch of := of.(type) {
	case *Object:
		value, ok := of.Values[name]
		if !ok {
			return nil, s.errorf(n, "there is no member %s", name)
		}
		return value, nil
	case *Resource:
		return s.answer(of, name), nil
	case partial:
		return s.answer(of.of, of.way+"."+name), nil
	case nil: // not deployed: only .? may access its members
		if strings.Contains(s.text(n), ".?") {
			return nil, nil
		}
		return nil, s.errorf(n, "%s is not always deployed: use .? and ??", s.text(n.ChildByFieldName("object")))
	case Unknown:
		return Unknown{s.text(n)}, nil
	}
	return nil, s.errorf(n, "%T has no members", of)
}

// partial is the path to a member of a resource.
type partial struct {
	of  *Resource
	way string
}

// String returns the path for messages.
func (p partial) String() string { return p.of.Symbol + "." + p.way }

// answer returns a member of a deployed resource, if it is known.
func (s *scope) answer(r *Resource, way string) any {
	if way == "name" {
		return r.Body.Get("name")
	}
	if s.runtime != nil {
		if value, ok := s.runtime(r, way); ok {
			return value
		}
	}
	if way == "id" || strings.Count(way, ".") > 0 {
		return Unknown{r.Symbol + "." + way}
	}
	return partial{r, way}
}

func (s *scope) subscript(n *sitter.Node) (any, error) {
	of, err := s.eval(n.ChildByFieldName("object"))
	if err != nil {
		return nil, err
	}
	index, err := s.eval(n.ChildByFieldName("index"))
	if err != nil {
		return nil, err
	}
	items, isArray := of.([]any)
	i, isNumber := index.(int64)
	if !isArray || !isNumber || i < 0 || int(i) >= len(items) {
		return nil, s.errorf(n, "there is no such item")
	}
	return items[i], nil
}
