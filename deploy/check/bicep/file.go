package bicep

import (
	"errors"
	"fmt"
	"os"

	grammar "github.com/tree-sitter-grammars/tree-sitter-bicep/bindings/go"
	sitter "github.com/tree-sitter/go-tree-sitter"
)

// file is a parsed file. Its tree lives as long as the process.
type file struct {
	path   string
	source []byte
	// params, vars and outputs are expressions by name; the expression of a parameter without a default is nil.
	params, vars, outputs map[string]*sitter.Node
	// resources and modules are declarations by symbol; order is their order in the file.
	resources, modules map[string]*sitter.Node
	order              []string
}

// parse reads a file. The error names every place with a syntax error.
func parse(path string) (*file, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parser := sitter.NewParser()
	defer parser.Close()
	if err := parser.SetLanguage(sitter.NewLanguage(grammar.Language())); err != nil {
		return nil, fmt.Errorf("load the grammar: %w", err)
	}
	f := &file{path: path, source: source, params: map[string]*sitter.Node{}, vars: map[string]*sitter.Node{}, outputs: map[string]*sitter.Node{},
		resources: map[string]*sitter.Node{}, modules: map[string]*sitter.Node{}}
	root := parser.Parse(source, nil).RootNode()
	if err := f.syntax(root); err != nil {
		return nil, err
	}
	return f, f.declare(root)
}

// syntax returns an error for the parts that the grammar cannot parse.
func (f *file) syntax(n *sitter.Node) error {
	if n.IsError() || n.IsMissing() {
		return f.errorf(n, "this is no Bicep: %.40q", f.text(n))
	}
	if !n.HasError() {
		return nil
	}
	var errs []error
	for i := range n.ChildCount() {
		errs = append(errs, f.syntax(n.Child(i)))
	}
	return errors.Join(errs...)
}

// declare collects the declarations.
func (f *file) declare(root *sitter.Node) error {
	var errs []error
	for i := range root.NamedChildCount() {
		n := root.NamedChild(i)
		var into map[string]*sitter.Node
		switch n.Kind() {
		case "parameter_declaration":
			into = f.params
		case "variable_declaration":
			into = f.vars
		case "output_declaration":
			into = f.outputs
		case "resource_declaration":
			into = f.resources
		case "module_declaration":
			into = f.modules
		case "comment", "decorators", "target_scope_assignment":
			continue
		default:
			errs = append(errs, f.errorf(n, "a %s is nothing that this reader knows", n.Kind()))
			continue
		}
		name := f.text(n.NamedChild(0))
		if n.Kind() != "output_declaration" && f.declared(name) {
			errs = append(errs, f.errorf(n, "%s is declared twice", name))
		}
		switch n.Kind() {
		case "resource_declaration", "module_declaration":
			into[name], f.order = n, append(f.order, name)
		default:
			into[name] = f.initial(n)
		}
	}
	return errors.Join(errs...)
}

// initial returns the expression after the equals sign, or nil without one.
func (f *file) initial(n *sitter.Node) *sitter.Node {
	for i := range n.ChildCount() {
		if n.Child(i).Kind() == "=" {
			return f.next(n, i+1)
		}
	}
	return nil
}

// next returns the first named child from an index on that is not a comment.
func (f *file) next(n *sitter.Node, from uint) *sitter.Node {
	for i := from; i < n.ChildCount(); i++ {
		if c := n.Child(i); c.IsNamed() && c.Kind() != "comment" {
			return c
		}
	}
	return nil
}

func (f *file) declared(name string) bool {
	for _, names := range []map[string]*sitter.Node{f.params, f.vars, f.resources, f.modules} {
		if _, ok := names[name]; ok {
			return true
		}
	}
	return false
}

// children returns the named children that are not comments.
func children(n *sitter.Node) []*sitter.Node {
	var all []*sitter.Node
	for i := range n.NamedChildCount() {
		if c := n.NamedChild(i); c.Kind() != "comment" {
			all = append(all, c)
		}
	}
	return all
}

func (f *file) text(n *sitter.Node) string { return n.Utf8Text(f.source) }

func (f *file) line(n *sitter.Node) int { return int(n.StartPosition().Row) + 1 }

func (f *file) errorf(n *sitter.Node, format string, args ...any) error {
	at := n.StartPosition()
	return fmt.Errorf("%s:%d:%d: %s", f.path, at.Row+1, at.Column+1, fmt.Sprintf(format, args...))
}
