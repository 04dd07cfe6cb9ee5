// Package fine does much, and nothing wrong.
package fine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

type order struct {
	Items []string       `json:"items"`
	Count map[string]int `json:"count"`
}

var errEmpty = errors.New("empty")

var ship = orchestrator.NewActivity("ship", func(context.Context, string) (time.Time, error) { return time.Now(), nil })

// Run ships an order.
func Run(ctx *orchestrator.Context, in order) (out []byte, err error) {
	defer func() {
		if err != nil {
			ctx.Logger().Error("not shipped", "error", err)
		}
	}()
	if len(in.Items) == 0 {
		return nil, orchestrator.Permanent(fmt.Errorf("ship: %w", errEmpty))
	}
	sort.Strings(in.Items)
	slices.SortFunc(in.Items, func(a, b string) int { return cmp.Compare(strings.ToLower(a), b) })
	var shipped []*orchestrator.Future[time.Time]
	for i, item := range in.Items {
		if in.Count[item] > 0 && math.Mod(float64(i), 2) == 0 {
			shipped = append(shipped, ship.Call(ctx, item, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 2})))
		}
	}
	times, err := orchestrator.All(shipped...)
	var failed *orchestrator.ActivityError
	if errors.As(err, &failed) || errors.Is(err, io.EOF) {
		return nil, err
	}
	for range in.Count {
		times = append(times, ctx.Now())
	}
	return json.Marshal(times)
}
