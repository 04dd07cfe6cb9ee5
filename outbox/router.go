package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Route selects events and their destination.
type Route struct {
	// EventType is one event type or, with a * at its end, a prefix of event types; "*" matches all.
	EventType string
	// TenantID is one tenant; "" means all of them.
	TenantID string
	// Destination is a name in Destinations.
	Destination string
}

// Destinations are Transports by name.
type Destinations map[string]Transport

// Router finds the destination of an event. The most specific Route wins: one for the tenant before one for all
// tenants, an event type before a prefix, and a longer prefix before a shorter one.
type Router struct {
	routes       []Route
	destinations Destinations
}

// NewRouter validates the routes: each needs an event type and an existing destination, and no two may have the same
// events. The error names all errors; it is an ErrInvalid.
func NewRouter(routes []Route, destinations Destinations) (*Router, error) {
	var errs []error
	seen := map[Route]bool{}
	for i, r := range routes {
		prefix := strings.TrimSuffix(r.EventType, "*")
		if r.EventType == "" || strings.Contains(prefix, "*") {
			errs = append(errs, fmt.Errorf("%w: route %d: event type %q: use a type, or a prefix and one * at its end", ErrInvalid, i, clip(r.EventType, 64)))
		}
		if destinations[r.Destination] == nil {
			errs = append(errs, fmt.Errorf("%w: route %d: destination %q is unknown: use one of %v", ErrInvalid, i, clip(r.Destination, 64), slices.Sorted(maps.Keys(destinations))))
		}
		what := Route{EventType: r.EventType, TenantID: r.TenantID}
		if seen[what] {
			errs = append(errs, fmt.Errorf("%w: route %d: there is one for event type %q and tenant %q already", ErrInvalid, i, clip(r.EventType, 64), clip(r.TenantID, 64)))
		}
		seen[what] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sorted := slices.Clone(routes)
	slices.SortStableFunc(sorted, bySpecificity)
	return &Router{routes: sorted, destinations: maps.Clone(destinations)}, nil
}

// Find returns the name and the Transport of an event's destination. The error is ErrNoRoute.
func (r *Router) Find(tenantID, eventType string) (string, Transport, error) {
	for _, route := range r.routes {
		if route.TenantID != "" && route.TenantID != tenantID {
			continue
		}
		prefix, any := strings.CutSuffix(route.EventType, "*")
		if eventType == route.EventType || any && strings.HasPrefix(eventType, prefix) {
			return route.Destination, r.destinations[route.Destination], nil
		}
	}
	return "", nil, fmt.Errorf("%w: event type %q of tenant %q: add a route", ErrNoRoute, clip(eventType, 64), clip(tenantID, 64))
}

// bySpecificity sorts more specific routes first.
func bySpecificity(a, b Route) int {
	return cmp.Or(
		-cmp.Compare(boolToInt(a.TenantID != ""), boolToInt(b.TenantID != "")),
		cmp.Compare(boolToInt(strings.HasSuffix(a.EventType, "*")), boolToInt(strings.HasSuffix(b.EventType, "*"))),
		-cmp.Compare(len(a.EventType), len(b.EventType)),
	)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
