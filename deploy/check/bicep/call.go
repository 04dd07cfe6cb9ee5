package bicep

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sitter "github.com/tree-sitter/go-tree-sitter"
)

// tenantID and token are the results of tenant().tenantId and uniqueString() in this package.
const (
	tenantID = "00000000-0000-4000-8000-000000000001"
	token    = "abcdefghijklm"
)

// call returns the result of a function call.
func (s *scope) call(n *sitter.Node) (any, error) {
	name := s.text(n.ChildByFieldName("function"))
	var args []any
	for _, c := range children(n.ChildByFieldName("arguments")) {
		value, err := s.eval(c)
		if err != nil {
			return nil, err
		}
		args = append(args, value)
	}
	function, ok := functions()[name]
	if !ok {
		return nil, s.errorf(n, "the function %s is nothing that this reader knows", name)
	}
	if slices.ContainsFunc(args, unknown) && !strings.HasSuffix(name, "esourceId") && name != "guid" && name != "union" {
		return Unknown{s.text(n)}, nil
	}
	value, err := function(s, args)
	if err != nil {
		return nil, s.errorf(n, "%s: %v", name, err)
	}
	return value, nil
}

// functions returns the functions of the language that the templates use.
func functions() map[string]func(s *scope, args []any) (any, error) {
	return map[string]func(s *scope, args []any) (any, error){
		"concat":                 concat,
		"empty":                  empty,
		"guid":                   joined,
		"items":                  items,
		"loadJsonContent":        load,
		"loadTextContent":        loadText,
		"max":                    largest,
		"replace":                replaced,
		"resourceId":             joined,
		"string":                 text,
		"subscriptionResourceId": joined,
		"toLower":                lower,
		"union":                  union,
		"environment":            func(*scope, []any) (any, error) { return publicCloud(), nil },
		"subscription":           func(*scope, []any) (any, error) { return objectOf("id", "/subscriptions/"+tenantID), nil },
		"tenant":                 func(*scope, []any) (any, error) { return objectOf("tenantId", tenantID), nil },
		"uniqueString":           func(*scope, []any) (any, error) { return token, nil },
	}
}

func objectOf(pairs ...any) *Object {
	o := newObject()
	for pair := range slices.Chunk(pairs, 2) {
		o.set(fmt.Sprint(pair[0]), pair[1], 0)
	}
	return o
}

func publicCloud() *Object {
	return objectOf(
		"suffixes", objectOf("storage", "core.windows.net", "keyvaultDns", ".vault.azure.net"),
		"authentication", objectOf("loginEndpoint", "https://login.microsoftonline.com/"))
}

func concat(_ *scope, args []any) (any, error) {
	out := []any{}
	for _, arg := range args {
		items, ok := arg.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is no array", arg)
		}
		out = append(out, items...)
	}
	return out, nil
}

func empty(_ *scope, args []any) (any, error) {
	switch arg := args[0].(type) {
	case nil:
		return true, nil
	case string:
		return arg == "", nil
	case []any:
		return len(arg) == 0, nil
	case *Object:
		return len(arg.Keys) == 0, nil
	}
	return nil, fmt.Errorf("%T is neither empty nor not", args[0])
}

// joined replaces functions that return IDs or values derived from IDs: it joins the arguments with slashes.
func joined(_ *scope, args []any) (any, error) {
	var parts []string
	for _, arg := range args {
		parts = append(parts, fmt.Sprint(arg))
	}
	return strings.Join(parts, "/"), nil
}

func items(_ *scope, args []any) (any, error) {
	o, ok := args[0].(*Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", args[0])
	}
	out := []any{}
	for _, key := range slices.Sorted(slices.Values(o.Keys)) {
		out = append(out, objectOf("key", key, "value", o.Values[key]))
	}
	return out, nil
}

func load(s *scope, args []any) (any, error) {
	text, err := loadText(s, args)
	if err != nil {
		return nil, err
	}
	var list []any
	return list, json.Unmarshal([]byte(fmt.Sprint(text)), &list)
}

func loadText(s *scope, args []any) (any, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(s.path), fmt.Sprint(args[0])))
	return string(text), err
}

func largest(_ *scope, args []any) (any, error) {
	var most int64
	for _, arg := range args {
		number, ok := arg.(int64)
		if !ok {
			return nil, fmt.Errorf("%T is no number", arg)
		}
		most = max(most, number)
	}
	return most, nil
}

func replaced(_ *scope, args []any) (any, error) {
	return strings.ReplaceAll(fmt.Sprint(args[0]), fmt.Sprint(args[1]), fmt.Sprint(args[2])), nil
}

// text returns a value as JSON, or a string unchanged.
func text(_ *scope, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return s, nil
	}
	out, err := json.Marshal(args[0])
	return string(out), err
}

func lower(_ *scope, args []any) (any, error) { return strings.ToLower(fmt.Sprint(args[0])), nil }

func union(_ *scope, args []any) (any, error) {
	out := args[0]
	for _, arg := range args[1:] {
		out = merged(out, arg)
	}
	return out, nil
}
