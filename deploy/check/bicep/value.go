package bicep

import (
	"encoding/json"
	"slices"
)

// A value is a string, an int64, a bool, nil, a []any, an *Object, a *Resource, or an Unknown.

// Unknown is a value that is known only during a deployment. What describes it in messages.
type Unknown struct{ What string }

// Object is an object with its members in order and the line of each member.
type Object struct {
	Keys   []string
	Values map[string]any
	Lines  map[string]int
}

func newObject() *Object { return &Object{Values: map[string]any{}, Lines: map[string]int{}} }

// Get returns a member, or nil if it does not exist.
func (o *Object) Get(path ...string) any {
	var at any = o
	for _, key := range path {
		inner, ok := at.(*Object)
		if !ok {
			return nil
		}
		at = inner.Values[key]
	}
	return at
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) { return json.Marshal(o.Values) }

func (o *Object) set(key string, value any, line int) {
	if _, ok := o.Values[key]; !ok {
		o.Keys = append(o.Keys, key)
	}
	o.Values[key], o.Lines[key] = value, line
}

// merged returns the union of two values, as Bicep's function union computes it: arrays without repetitions, objects
// member by member.
func merged(a, b any) any {
	switch a := a.(type) {
	case *Object:
		if b, ok := b.(*Object); ok {
			out := newObject()
			for _, o := range []*Object{a, b} {
				for _, key := range o.Keys {
					out.set(key, o.Values[key], o.Lines[key])
				}
			}
			return out
		}
	case []any:
		if b, ok := b.([]any); ok {
			out := slices.Clone(a)
			for _, item := range b {
				if !slices.Contains(out, item) {
					out = append(out, item)
				}
			}
			return out
		}
	}
	return Unknown{"a union"}
}

// Resource is a resource that is deployed, or only referred to if Existing is set.
type Resource struct {
	File string
	Line int
	// Module is the path of the template: the names of the modules, joined with slashes.
	Module, Symbol string
	// Type is the type with its version after an @.
	Type     string
	Existing bool
	// Body is the declared body, including parent and scope.
	Body *Object
	// Parent and Scope are the resources of these members.
	Parent, Scope *Resource
}

// Name returns the resource's name; parts of it can be unknown.
func (r *Resource) Name() string {
	name, _ := r.Body.Get("name").(string)
	return name
}
