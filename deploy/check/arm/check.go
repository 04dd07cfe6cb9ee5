package arm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/deploy/check/bicep"
)

// Check returns the mistakes in a resource, one sentence each. The result is empty if there are none.
func (t *Types) Check(r *bicep.Resource) []string {
	place, err := t.resource(r.Type)
	if err != nil {
		return []string{fmt.Sprintf("%s:%d: %s: %v", r.File, r.Line, r.Symbol, err)}
	}
	c := &checker{types: t, resource: r}
	body, err := t.follow(place, place.Body.Ref)
	if err != nil {
		return []string{err.Error()}
	}
	if r.Existing {
		if r.Body.Get("name") == nil {
			c.say(r.Line, "", "it has no name")
		}
		return c.found
	}
	// These members belong to the language, not to the resource.
	own := []string{"parent", "scope", "dependsOn"}
	without := &bicep.Object{Values: r.Body.Values, Lines: r.Body.Lines}
	for _, key := range r.Body.Keys {
		if !slices.Contains(own, key) {
			without.Keys = append(without.Keys, key)
		}
	}
	c.check(without, body, "", r.Line)
	return c.found
}

type checker struct {
	types    *Types
	resource *bicep.Resource
	found    []string
}

func (c *checker) say(line int, way, format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("%s:%d: %s: %s%s", c.resource.File, line, c.resource.Symbol, strings.TrimPrefix(way+": ", ": "), fmt.Sprintf(format, args...)))
}

// check checks a value against a type.
func (c *checker) check(value any, want at, way string, line int) {
	if value == nil { // null means an omitted member
		return
	}
	switch value.(type) {
	case string, int64, bool, []any, *bicep.Object:
	default:
		return
	}
	switch want.Kind {
	case "ObjectType":
		if o, ok := is[*bicep.Object](c, value, way, line, "an object"); ok {
			c.members(o, want, want.Properties, want.AdditionalProperties, way, line)
		}
	case "DiscriminatedObjectType":
		if o, ok := is[*bicep.Object](c, value, way, line, "an object"); ok {
			c.discriminated(o, want, way, line)
		}
	case "ArrayType":
		if items, ok := is[[]any](c, value, way, line, "an array"); ok {
			item, ok := c.follow(want, want.ItemType.Ref, way, line)
			for i := 0; ok && i < len(items); i++ {
				c.check(items[i], item, fmt.Sprintf("%s[%d]", way, i), line)
			}
		}
	case "StringType":
		if text, ok := is[string](c, value, way, line, "a string"); ok {
			c.within(int64(len(text)), want.MinLength, want.MaxLength, way, line, "characters")
		}
	case "IntegerType":
		if number, ok := is[int64](c, value, way, line, "a number"); ok {
			c.within(number, want.MinValue, want.MaxValue, way, line, "")
		}
	case "BooleanType":
		is[bool](c, value, way, line, "true or false")
	case "StringLiteralType":
		if value != want.Value {
			c.say(line, way, "%v is none of %q", value, []string{want.Value})
		}
	case "UnionType":
		c.union(value, want, way, line)
	}
}

// is returns a value as a T and reports a value of another kind.
func is[T any](c *checker, value any, way string, line int, what string) (T, bool) {
	typed, ok := value.(T)
	if !ok {
		c.say(line, way, "%v is not %s", value, what)
	}
	return typed, ok
}

func (c *checker) within(number int64, least, most *int64, way string, line int, what string) {
	if least != nil && number < *least || most != nil && number > *most {
		c.say(line, way, "%d %s is out of bounds", number, what)
	}
}

func (c *checker) follow(from at, ref, way string, line int) (at, bool) {
	next, err := c.types.follow(from, ref)
	if err != nil {
		c.say(line, way, "%v", err)
	}
	return next, err == nil
}

// members checks the members of an object against those of its type.
func (c *checker) members(o *bicep.Object, from at, known map[string]property, others *reference, way string, line int) {
	for _, key := range o.Keys {
		inner := strings.TrimPrefix(way+"."+key, ".")
		p, ok := known[key]
		switch {
		case ok && p.Flags&readOnly != 0 && p.Flags&required == 0:
			c.say(o.Lines[key], inner, "only Azure sets it")
		case ok:
			if next, found := c.follow(from, p.Type.Ref, inner, o.Lines[key]); found {
				c.check(o.Values[key], next, inner, o.Lines[key])
			}
		case others != nil:
			if next, found := c.follow(from, others.Ref, inner, o.Lines[key]); found {
				c.check(o.Values[key], next, inner, o.Lines[key])
			}
		default:
			c.say(o.Lines[key], inner, "there is no such member")
		}
	}
	for key, p := range known {
		if p.Flags&required != 0 && p.Flags&readOnly == 0 && o.Values[key] == nil {
			c.say(line, strings.TrimPrefix(way+"."+key, "."), "it is missing")
		}
	}
}

// discriminated checks an object against one of several types, which a member of the object selects.
func (c *checker) discriminated(o *bicep.Object, want at, way string, line int) {
	var elements map[string]reference
	if err := json.Unmarshal(want.Elements, &elements); err != nil {
		c.say(line, way, "%v", err)
		return
	}
	which, ok := o.Values[want.Discriminator].(string)
	if !ok {
		return // known only during the deployment
	}
	element, ok := elements[which]
	if !ok {
		c.say(line, way, "%s is %q, which is none of those that there are", want.Discriminator, which)
		return
	}
	if next, ok := c.follow(want, element.Ref, way, line); ok {
		all := map[string]property{}
		for _, properties := range []map[string]property{want.BaseProperties, next.Properties} {
			for name, p := range properties {
				all[name] = p
			}
		}
		c.members(o, next, all, next.AdditionalProperties, way, line)
	}
}

// union checks a value against alternatives. If a type lists values and also accepts any text, only the listed values
// are accepted: services use such types to be able to add values later, but an unlisted value is far more often a
// typing mistake than a new value.
func (c *checker) union(value any, want at, way string, line int) {
	var elements []reference
	if err := json.Unmarshal(want.Elements, &elements); err != nil {
		c.say(line, way, "%v", err)
		return
	}
	var names []string
	for _, element := range elements {
		next, ok := c.follow(want, element.Ref, way, line)
		if !ok {
			return
		}
		switch {
		case next.Kind == "StringLiteralType":
			names = append(names, next.Value)
		case next.Kind != "StringType":
			return // a choice between kinds, which cannot be checked
		}
	}
	if text, ok := is[string](c, value, way, line, "a string"); ok && len(names) > 0 && !slices.Contains(names, text) {
		c.say(line, way, "%q is none of %q", text, names)
	}
}
