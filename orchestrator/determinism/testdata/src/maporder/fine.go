package maporder

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/vibedata/roundhouse/orchestrator"
)

func nothing(context.Context, string) (int, error) { return 0, nil }

var _ = orchestrator.NewOrchestrator("loops", func(ctx *orchestrator.Context, m map[string]int) (int, error) {
	n, sum, large := 0, 0, 0
	for range m {
		n++
		act.Call(ctx, "one of them")
	}
	copied, seen, counts := map[string]string{}, map[int]struct{}{}, map[int]int{}
	for k, v := range m {
		if v < 0 {
			continue
		}
		sum += v
		sum -= len(k)
		if name := strings.ToLower(k); len(name) > 3 && v > 2 {
			large++
		} else if v == 1 {
			delete(m, k)
		}
		copied[k] = fmt.Sprintf("%s:%d", k, int64(v))
		seen[v] = struct{}{}
		counts[v]++
		counts[len(k)] += v
	}
	for k, v := range maps.All(m) {
		copied[k] = fmt.Sprint(v)
	}
	for k := range maps.Keys(m) {
		copied[k] = k
	}
	for v := range maps.Values(m) {
		sum += v
	}
	return n + sum + large, nil
})

type pair struct {
	key   string
	value int
}

var _ = orchestrator.NewOrchestrator("sorted", func(ctx *orchestrator.Context, m map[string]int) ([]string, error) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		act.Call(ctx, k)
	}
	_ = slices.SortedFunc(maps.Values(m), cmp.Compare[int])
	_ = maps.Collect(maps.All(m))

	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	sort.Strings(keys)

	var pairs []pair
	for k, v := range m {
		if v > 0 {
			pairs = append(pairs, pair{k, v})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.key, b.key) })

	var down []string
	for i := range 3 {
		for k := range m {
			down = append(down, k+fmt.Sprint(i))
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(down)))

	collected := slices.Collect(maps.Keys(m))
	slices.Sort(collected)
	collected = slices.AppendSeq(collected, maps.Keys(m))
	slices.Sort(collected)
	switch {
	case len(m) > 1:
		for k := range m {
			collected = append(collected, k)
		}
	}
	slices.Sort(collected)
	return append(keys, down...), nil
})
