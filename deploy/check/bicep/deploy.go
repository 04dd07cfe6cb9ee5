package bicep

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sitter "github.com/tree-sitter/go-tree-sitter"
)

// Config holds the inputs of a deployment.
type Config struct {
	// Params are the parameters of the template. Parameters with a default are optional.
	Params map[string]any
	// Runtime returns a member of a deployed resource, by the path of the member, such as properties.vaultUri. If
	// Runtime is nil, no such member is known.
	Runtime func(r *Resource, way string) (any, bool)
}

// Deployment is the result of a template.
type Deployment struct {
	// Resources are the resources of all modules.
	Resources []*Resource
	// Outputs are the outputs of the template.
	Outputs map[string]any
	// Used are the symbols that expressions refer to, as file:symbol; Declared are all parameters and variables.
	Used, Declared map[string]bool
}

// Deploy computes the deployment of a template.
func Deploy(path string, c Config) (*Deployment, error) {
	d := &Deployment{Used: map[string]bool{}, Declared: map[string]bool{}}
	s, err := d.open(path, "", c.Params, c.Runtime)
	if err != nil {
		return nil, err
	}
	d.Outputs, err = s.deploy()
	return d, err
}

// scope is one template with its parameters.
type scope struct {
	*file
	out     *Deployment
	way     string
	runtime func(*Resource, string) (any, bool)
	// known are the values of symbols evaluated so far, busy are the symbols in evaluation, and locals are the
	// variables of loops.
	known  map[string]any
	busy   map[string]bool
	locals []map[string]any
}

// open reads a template and checks the parameters passed to it.
func (d *Deployment) open(path, way string, params map[string]any, runtime func(*Resource, string) (any, bool)) (*scope, error) {
	f, err := parse(path)
	if err != nil {
		return nil, err
	}
	s := &scope{file: f, out: d, way: way, runtime: runtime, known: map[string]any{}, busy: map[string]bool{}}
	var errs []error
	for name, value := range params {
		if _, ok := f.params[name]; !ok {
			errs = append(errs, fmt.Errorf("%s: there is no parameter %s", path, name))
		}
		s.known[name] = value
	}
	for name, initial := range f.params {
		d.Declared[path+":"+name] = true
		if _, given := params[name]; !given && initial == nil {
			errs = append(errs, fmt.Errorf("%s: the parameter %s is not given%s", path, name, by(way)))
		}
	}
	for name := range f.vars {
		d.Declared[path+":"+name] = true
	}
	return s, errors.Join(errs...)
}

func by(way string) string {
	if way == "" {
		return ""
	}
	return " by the module " + way
}

// deploy evaluates all declarations and returns the outputs.
func (s *scope) deploy() (map[string]any, error) {
	var errs []error
	for _, name := range s.order {
		_, err := s.symbol(name, nil)
		errs = append(errs, err)
	}
	for name := range s.vars {
		_, err := s.symbol(name, nil)
		errs = append(errs, err)
	}
	outputs := map[string]any{}
	for name, n := range s.outputs {
		value, err := s.eval(n)
		outputs[name] = value
		errs = append(errs, err)
	}
	return outputs, errors.Join(errs...)
}

// symbol returns the value of a name. at is the place of the reference, nil for the declaration itself.
func (s *scope) symbol(name string, at *sitter.Node) (any, error) {
	for _, local := range slices.Backward(s.locals) {
		if value, ok := local[name]; ok {
			return value, nil
		}
	}
	if at != nil {
		s.out.Used[s.path+":"+name] = true
	}
	if value, ok := s.known[name]; ok {
		return value, nil
	}
	if s.busy[name] {
		return nil, s.errorf(at, "%s depends on itself", name)
	}
	s.busy[name] = true
	value, err := s.declaration(name, at)
	delete(s.busy, name)
	if err == nil {
		s.known[name] = value
	}
	return value, err
}

func (s *scope) declaration(name string, at *sitter.Node) (any, error) {
	if n, ok := s.vars[name]; ok {
		return s.eval(n)
	}
	if n := s.params[name]; n != nil {
		return s.eval(n)
	}
	if n, ok := s.resources[name]; ok {
		return s.each(s.initial(n), func(body *sitter.Node) (any, error) { return s.resource(name, n, body) })
	}
	if n, ok := s.modules[name]; ok {
		return s.each(s.initial(n), func(body *sitter.Node) (any, error) { return s.module(n, body) })
	}
	return nil, s.errorf(at, "nothing here has the name %s", name)
}

// each evaluates a declaration: once, once for each item of a loop, or not at all if its condition is false.
func (s *scope) each(n *sitter.Node, do func(body *sitter.Node) (any, error)) (any, error) {
	switch n.Kind() {
	case "for_statement":
		return s.loop(n, func(body *sitter.Node) (any, error) { return s.each(body, do) })
	case "if_statement":
		parts := children(n)
		condition, err := s.eval(parts[0])
		if err != nil || condition == false {
			return nil, err
		}
		return do(parts[1])
	}
	return do(n)
}

// resource evaluates a single resource.
func (s *scope) resource(symbol string, n, body *sitter.Node) (*Resource, error) {
	value, err := s.eval(body)
	if err != nil {
		return nil, err
	}
	object, ok := value.(*Object)
	if !ok {
		return nil, s.errorf(body, "a resource is an object")
	}
	kind, err := s.eval(children(n)[1])
	if err != nil {
		return nil, err
	}
	head, _, _ := strings.Cut(s.text(n), "=") // the keyword there is not a node of the tree
	r := &Resource{File: s.path, Line: s.line(n), Module: s.way, Symbol: symbol, Type: fmt.Sprint(kind), Body: object,
		Existing: strings.HasSuffix(strings.TrimSpace(head), "' existing")}
	r.Parent, _ = object.Get("parent").(*Resource)
	r.Scope, _ = object.Get("scope").(*Resource)
	s.out.Resources = append(s.out.Resources, r)
	return r, nil
}

// module deploys another template; its value is an object with the outputs.
func (s *scope) module(n, body *sitter.Node) (*Object, error) {
	value, err := s.eval(body)
	if err != nil {
		return nil, err
	}
	path, err := s.eval(children(n)[1])
	if err != nil {
		return nil, err
	}
	object, ok := value.(*Object)
	if !ok {
		return nil, s.errorf(body, "a module is an object")
	}
	for _, key := range object.Keys {
		if !slices.Contains([]string{"name", "scope", "params", "dependsOn"}, key) {
			return nil, s.errorf(body, "a module has no member %s", key)
		}
	}
	params := map[string]any{}
	if given, ok := object.Get("params").(*Object); ok {
		params = given.Values
	}
	inner, err := s.out.open(filepath.Join(filepath.Dir(s.path), fmt.Sprint(path)), strings.TrimPrefix(s.way+"/"+fmt.Sprint(object.Get("name")), "/"), params, s.runtime)
	if err != nil {
		return nil, fmt.Errorf("%w\n%w", s.errorf(n, "this module:"), err)
	}
	outputs, err := inner.deploy()
	if err != nil {
		return nil, err
	}
	results := newObject()
	for name, value := range outputs {
		results.set(name, value, s.line(n))
	}
	out := newObject()
	out.set("outputs", results, s.line(n))
	return out, nil
}
