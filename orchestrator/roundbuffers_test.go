package orchestrator

import (
	"testing"

	"github.com/vibedata/roundhouse/tables"
)

// Buffers that are passed on hold nothing of the orchestration that has used them, not even after their ends.
func TestBuffersAreHandedOnEmpty(t *testing.T) {
	t.Parallel()
	var pool bufferPool
	b := pool.get()
	b.statusColumns()["CustomStatus"] = "secret"
	if _, _, err := new(codec).encode(b, round{Learned: []event{{Kind: executionStarted, Payload: []byte(`"secret"`)}}}); err != nil {
		t.Fatal(err)
	}
	b.ops = append(b.ops, tables.Insert(tables.Entity{Key: tables.Key{Partition: "secret"}, Properties: b.columns}))
	b.state = append(b.state, "secret"...)
	pool.put(b)
	if len(b.status)+len(b.columns)+len(b.ops)+len(b.text)+len(b.state) > 0 {
		t.Errorf("handed on are %v %v %v %q %q", b.status, b.columns, b.ops, b.text, b.state)
	}
	for _, text := range [][]byte{b.text[:cap(b.text)], b.state[:cap(b.state)]} {
		for _, c := range text {
			if c != 0 {
				t.Fatalf("handed on is %q", text)
			}
		}
	}
	for _, op := range b.ops[:cap(b.ops)] {
		if op.Entity.Partition != "" || op.Entity.Properties != nil {
			t.Errorf("handed on is %v", op)
		}
	}
}
