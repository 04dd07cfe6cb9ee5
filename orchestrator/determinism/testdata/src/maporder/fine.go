package maporder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

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

var errNegative = errors.New("negative")

func extremes(ctx *orchestrator.Context, m map[string]int, due map[string]time.Time, all map[string][]int) (string, error) {
	most, least, longest, widest := 0, math.MaxInt, 0, 0
	for k, v := range m {
		if v > most {
			most = v
		}
		least, longest = min(least, v), max(longest, v)
		if n := len(k); n > widest {
			widest = n
		}
	}
	name, first := "", true
	for k, v := range m {
		if first || v > most || v == most && k < name {
			most, name, first = v, k, false
		}
	}
	for _, v := range m {
		if v <= most {
			continue
		}
		most = v
	}
	var latest time.Time
	for _, t := range due {
		if t.After(latest) {
			latest = t
		}
	}
	last, value := "", 0
	for k, v := range m {
		if k > last {
			last = k
			value = v
		}
	}
	for _, list := range all {
		sum := 0
		for _, v := range list {
			if v < 0 {
				v = -v
			}
			sum += v
		}
		switch {
		case sum > 3:
			value++
		default:
			least--
		}
		if sum > most {
			most = sum
		}
	}
	most = slices.Max(slices.Collect(maps.Values(m)))
	act.Call(ctx, fmt.Sprint(most, least, longest, widest, name, latest, last, value))
	return name, nil
}

func all(_ *orchestrator.Context, m map[string]int) bool {
	for _, v := range m {
		if v <= 0 {
			return false
		}
	}
	return true
}

func checked(_ *orchestrator.Context, m map[string]int, done map[string]bool) (string, error) {
	every, some := true, false
	for _, d := range done {
		if !d {
			every = false
			break
		}
	}
	for _, d := range done {
		every = every && d
		some = d || some
	}
	for k, v := range m {
		if v > 100 && k != "total" {
			some = true
		}
	}
	for _, v := range m {
		if v < 0 {
			return "", orchestrator.Permanent(errNegative)
		} else if v == 0 {
			return "", orchestrator.Permanent(errNegative)
		}
	}
	for _, v := range maps.All(m) {
		if v == 0 {
			return "", fmt.Errorf("check: %w", errNegative)
		}
	}
	small := func(n int) bool { return n < 3 }
	for k, v := range m {
		if !small(v) || !valid(k) || slices.Contains([]string{"x"}, k) {
			return "", nil
		}
	}
	return fmt.Sprint(every, some, all(nil, m)), nil
}

func valid(k string) bool {
	n := 0
	for range k {
		n++
	}
	return n > 3
}

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
