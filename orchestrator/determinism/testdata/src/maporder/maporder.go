// Package maporder ranges over maps whose order shows.
package maporder

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/vibedata/roundhouse/orchestrator"
)

var act = orchestrator.NewActivity("act", nothing)

var _ = orchestrator.NewOrchestrator("calls", func(ctx *orchestrator.Context, m map[string]int) (int, error) {
	for k := range m { // want `^orchestrator code ranges over a map: range over slices\.Sorted\(maps\.Keys\(m\)\)$`
		act.Call(ctx, k)
	}
	for k, v := range m { // want `ranges over a map: `
		_ = fmt.Sprint(k, v)
		act.Call(ctx, "x")
	}
	return 0, nil
})

var _ = orchestrator.NewOrchestrator("leaks", func(ctx *orchestrator.Context, m map[string]int) (string, error) {
	for k, v := range m { // want `ranges over a map: `
		if v > 3 {
			return k, nil
		}
	}
	var last string
	for k := range m { // want `ranges over a map: `
		last = k
	}
	for last = range m { // want `ranges over a map: `
	}
	text := ""
	for k := range m { // want `ranges over a map: `
		text += k
	}
	sum := 0.0
	for _, v := range m { // want `ranges over a map: `
		sum += float64(v)
	}
	for range m {
		sum += 0.1
	}
	n := 0
	for _, v := range m { // want `ranges over a map: `
		n += v
		if n > 10 {
			continue
		}
	}
	for _, v := range m { // want `ranges over a map: `
		if v == 0 {
			break
		}
		n++
	}
	for k := range m { // want `ranges over a map: `
		n += len(unknown(k))
	}
	for k := range m { // want `ranges over a map: `
		k += "x"
		n++
	}
	return last + text, nil
})

var _ = orchestrator.NewOrchestrator("elements", func(ctx *orchestrator.Context, m map[string]int) (string, error) {
	inverse := map[int]string{}
	for k, v := range m { // want `ranges over a map: `
		inverse[v] = k
	}
	for k, v := range m { // want `ranges over a map: `
		m[strings.ToLower(k)] = v
	}
	for _, v := range m { // want `ranges over a map: `
		m[fmt.Sprint(v)] = 1
	}
	for _, v := range m { // want `ranges over a map: `
		delete(m, fmt.Sprint(v))
	}
	flags := map[int]bool{}
	for k, v := range m { // want `ranges over a map: `
		flags[v] = true
		flags[len(k)] = false
	}
	counts := map[int]int{}
	for k, v := range m { // want `ranges over a map: `
		counts[v]++
		counts[len(k)] = 7
	}
	for k, v := range m { // want `ranges over a map: `
		counts[v] += counts[len(k)]
	}
	return "", nil
})

var _ = orchestrator.NewOrchestrator("unsorted", func(ctx *orchestrator.Context, m map[string]int) (names []string, err error) {
	var keys []string
	for k := range m { // want `ranges over a map: `
		keys = append(keys, k)
	}
	act.Call(ctx, keys[0])
	sort.Strings(keys)

	var other []string
	for k := range m { // want `ranges over a map: `
		other = append(keys, k)
	}
	sort.Strings(other)

	var half []string
	for k := range m { // want `ranges over a map: `
		half = append(half, k)
	}
	sort.Strings(half[1:])

	var sometimes []string
	for k := range m { // want `ranges over a map: `
		sometimes = append(sometimes, k)
	}
	if len(m) > 3 {
		sort.Strings(sometimes)
	}

	for k := range m { // want `ranges over a map: `
		names = append(names, k)
	}
	if len(keys) > 3 {
		return
	}
	sort.Strings(names)

	var rounds []string
	for i := range 3 {
		if i > 0 {
			act.Call(ctx, rounds[0])
		}
		for k := range m { // want `ranges over a map: `
			rounds = append(rounds, k)
		}
	}
	sort.Strings(rounds)

	var skipped []string
	for i := range 3 {
		for k := range m { // want `ranges over a map: `
			skipped = append(skipped, k)
		}
		if i == 1 {
			break
		}
		sort.Strings(skipped)
	}

	var never []string
	for k := range m { // want `ranges over a map: `
		never = append(never, k)
	}
	return never, nil
})

var _ = orchestrator.NewOrchestrator("iterators", func(ctx *orchestrator.Context, m map[string]int) ([]string, error) {
	for k := range maps.Keys(m) { // want `calls maps\.Keys: take slices\.Sorted of it`
		act.Call(ctx, k)
	}
	byValue := map[int]int{}
	for v := range maps.Values(m) { // want `calls maps\.Values: `
		byValue[v] = len(m) + v
	}
	for _, v := range maps.All(m) { // want `calls maps\.All: `
		m[fmt.Sprint(v)] = 1
	}
	keys := slices.Collect(maps.Keys(m)) // want `calls maps\.Keys: `
	iterator := maps.Keys(m)             // want `calls maps\.Keys: `
	take(maps.Keys[map[string]int])      // want `uses maps\.Keys: `
	for range iterator {
	}
	reflect.ValueOf(m).MapKeys() // want `calls reflect\.Value\.MapKeys: `
	return keys, nil
})

var _ = orchestrator.NewOrchestrator("exits", func(ctx *orchestrator.Context, m map[string]int) (string, error) {
	for _, v := range m { // want `ranges over a map: `
		if v < 0 {
			return "negative", nil
		}
		if v > 100 {
			return "large", nil
		}
	}
	seen := false
	for _, v := range m { // want `ranges over a map: `
		if v == 7 {
			seen = true
		}
		if v > 100 {
			break
		}
	}
	visited := 0
	for _, v := range m { // want `ranges over a map: `
		if v < 0 {
			return "negative", nil
		}
		visited++
	}
	for k, v := range m { // want `ranges over a map: `
		if v < 0 {
			return "", fmt.Errorf("%s is negative", k)
		}
	}
	for _, v := range m { // want `ranges over a map: `
		if touch(fmt.Sprint(v)) == "" {
			return "", nil
		}
		act.Call(ctx, "x")
	}
	return fmt.Sprint(seen, visited), nil
})

var _ = orchestrator.NewOrchestrator("extremes", func(ctx *orchestrator.Context, m map[string]int) (string, error) {
	most, name := 0, ""
	for k, v := range m { // want `ranges over a map: `
		if v > most {
			most, name = v, k
		}
	}
	for k, v := range m { // want `ranges over a map: `
		if v > m[name] {
			name = k
		}
	}
	for k, v := range m { // want `ranges over a map: `
		if len(k) > most {
			most = v
		}
	}
	least := 0
	for _, v := range m { // want `ranges over a map: `
		if least == 0 || v < least {
			least = v
		}
	}
	for _, v := range m { // want `ranges over a map: `
		if v > most {
			most = v
		}
		if v < most {
			most = v
		}
	}
	records := 0
	for _, v := range m { // want `ranges over a map: `
		if v > most {
			most = v
			records++
		}
	}
	on := true
	for _, v := range m { // want `ranges over a map: `
		on = !on && v > 0
	}
	return name, nil
})

var unknown func(string) string

func touch(s string) string { return s }

func take(any) {}
