package localhost

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// route is a parsed route template and its function.
type route struct {
	function *function
	segments []segment
	template string // with the prefix, as displayed
}

// segment is a part of a template between slashes.
type segment struct {
	kind       segmentKind
	text       string // the literal, or the parameter's name
	constraint *regexp.Regexp
	optional   bool
}

// segmentKind is ordered by precedence: the more specific one is tried first.
type segmentKind int

const (
	literal segmentKind = iota
	constrained
	parameter
	catchAll
)

var parameterSegment = regexp.MustCompile(`^\{(\*{0,2})([A-Za-z_][A-Za-z0-9_]*)(?::([a-z]+))?(\?)?\}$`)

// constraintPattern returns the pattern of a parameter's constraint.
func constraintPattern(name string) (*regexp.Regexp, error) {
	switch name {
	case "int", "long":
		return regexp.MustCompile(`^[+-]?\d{1,19}$`), nil
	case "bool":
		return regexp.MustCompile(`^(?i:true|false)$`), nil
	case "alpha":
		return regexp.MustCompile(`^[A-Za-z]*$`), nil
	case "guid":
		return regexp.MustCompile(`^\{?[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}\}?$`), nil
	default:
		return nil, fmt.Errorf("constraint %q is not supported by the local host", name)
	}
}

// parseRoute reads the template of an http function under a prefix. A function without a template has its name as
// route.
func parseRoute(f *function, prefix string) (route, error) {
	template := f.name
	if f.trigger.Route != nil {
		template = strings.Trim(*f.trigger.Route, "/")
	}
	for _, kept := range []string{"admin", "runtime"} { // the real host checks only the beginning, without the prefix
		if strings.HasPrefix(strings.ToLower(template), kept) {
			return route{}, fmt.Errorf("route %q: %s is the host's own", template, kept)
		}
	}
	full := strings.Trim(prefix+"/"+template, "/")
	r := route{function: f, template: full}
	if full == "" {
		return r, nil
	}
	parts := strings.Split(full, "/")
	for i, part := range parts {
		s, err := parseSegment(part)
		if err != nil {
			return route{}, fmt.Errorf("route %q: %w", template, err)
		}
		if (s.optional || s.kind == catchAll) && i < len(parts)-1 {
			return route{}, fmt.Errorf("route %q: %s can only be the last part", template, part)
		}
		r.segments = append(r.segments, s)
	}
	return r, nil
}

func parseSegment(part string) (segment, error) {
	if !strings.ContainsAny(part, "{}") {
		text, err := url.PathUnescape(part)
		return segment{kind: literal, text: text}, err
	}
	m := parameterSegment.FindStringSubmatch(part)
	if m == nil {
		return segment{}, fmt.Errorf("%q is not supported by the local host: a part is a text or one {parameter}", part)
	}
	s := segment{kind: parameter, text: m[2], optional: m[4] != ""}
	if m[3] != "" {
		pattern, err := constraintPattern(m[3])
		if err != nil {
			return segment{}, err
		}
		s.kind, s.constraint = constrained, pattern
	}
	if m[1] != "" {
		if s.kind == constrained {
			return segment{}, fmt.Errorf("%q is not supported by the local host: a catch-all has no constraint", part)
		}
		s.kind = catchAll
	}
	return s, nil
}

// match compares a decoded path without regard to case. A catch-all matches empty parts, except for its first one.
func (r route) match(path string) (parameters map[string]string, ok bool) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	var parts []string
	if path != "" {
		parts = strings.Split(path, "/")
	}
	parameters = map[string]string{}
	for i, s := range r.segments {
		if s.kind == catchAll {
			if i < len(parts) {
				parameters[s.text] = strings.Join(parts[i:], "/")
			}
			return parameters, i >= len(parts) || parts[i] != ""
		}
		if i >= len(parts) {
			return parameters, s.optional
		}
		if !s.accepts(parts[i]) {
			return nil, false
		}
		if s.kind != literal {
			parameters[s.text] = parts[i]
		}
	}
	return parameters, len(parts) <= len(r.segments)
}

func (s segment) accepts(value string) bool {
	switch s.kind {
	case literal:
		return strings.EqualFold(value, s.text)
	case constrained:
		return s.constraint.MatchString(value)
	default:
		return value != ""
	}
}

// sortRoutes puts the more specific of two routes first.
func sortRoutes(routes []route) {
	slices.SortStableFunc(routes, func(a, b route) int {
		return slices.CompareFunc(a.segments, b.segments, func(x, y segment) int { return cmp.Compare(x.kind, y.kind) })
	})
}

// allows reports whether the function accepts a method; without a list it accepts all.
func (f *function) allows(method string) bool {
	return len(f.trigger.Methods) == 0 || slices.ContainsFunc(f.trigger.Methods, func(m string) bool {
		return strings.EqualFold(m, method)
	})
}
