package outbox

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
)

// From Add to processed in memory: a few tenants with messages that are added one at a time, and one dispatcher.
func BenchmarkMemory(b *testing.B) {
	w := newWorld(b)
	w.options.BatchSize = 50
	p := w.process(b, nil)
	p.o.logger = slog.New(slog.DiscardHandler)
	p.o.wake.logger = p.o.logger
	const tenants = 4
	b.ResetTimer()
	var wg sync.WaitGroup
	for tenant := range tenants {
		wg.Go(func() {
			for i := range b.N / tenants {
				m := message1(i)
				m.TenantID = fmt.Sprint("tenant-", tenant)
				if _, err := p.writer.Add(b.Context(), m); err != nil {
					b.Error(err)
				}
				if i%200 == 199 {
					if _, err := p.dispatcher.Dispatch(b.Context(), m.TenantID); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	p.sweep(b)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
