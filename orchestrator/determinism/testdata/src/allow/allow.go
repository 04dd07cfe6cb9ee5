// Package allow makes exceptions.
package allow

import (
	"sync"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

var mu sync.Mutex

func guarded(m map[string]int) int {
	mu.Lock()         //determinism:allow guards a cache of what is always the same
	defer mu.Unlock() //determinism:allow	see above
	return len(m)
}

func half() time.Time { // want half:`calls time\.Now`
	_ = time.Now() //determinism:allow only this line
	return time.Now()
}

var _ = orchestrator.NewOrchestrator("allow", func(ctx *orchestrator.Context, in map[string]int) (int, error) {
	_ = time.Now()         //determinism:allow for the example
	_ = half()             //determinism:allow for the example
	for _, v := range in { //determinism:allow for the example
		_ = time.Unix(int64(v), 0)
	}
	_ = half()     // want `calls allow\.half, which calls time\.Now: `
	_ = time.Now() /* want `needs a reason` `calls time\.Now: ` */ //determinism:allow
	_ = time.Now() /* want `needs a reason` `calls time\.Now: ` */ //determinism:allow   // because
	_ = time.Now() /* want `calls time\.Now: ` */                  //determinism:allowed by nobody
	_ = ctx.Now()  /* want `allows nothing` */                     //determinism:allow without need
	_ = func() int { return guarded(in) }()
	/* want +1 `allows nothing` */
	//determinism:allow the next line
	_ = time.Now() // want `calls time\.Now: `
	return guarded(in), nil
})

// Without orchestrators around, a reason is needed all the same.
func alone() { // want alone:`calls time\.Sleep`
	time.Sleep(1) /* want `needs a reason` */ //determinism:allow
}
