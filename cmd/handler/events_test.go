package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestEnginesPublish(t *testing.T) {
	t.Parallel()
	o, err := outbox.New(outbox.Config{Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Options: outbox.DefaultOptions()})
	if err == nil {
		err = o.Create(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	publisher := eventPublisher{outbox.NewWriter(o)}
	event := hmac.Event{TenantID: "contoso", Type: hmac.EventRotated, Category: "hmac", Entity: "i1", Kind: "rotated", Version: "s/1", OrderKey: "s", CorrelationID: "c1", Payload: []byte(`{}`)}
	for range 2 {
		id, err := publisher.Publish(t.Context(), event)
		if err != nil || id != outbox.Key("contoso", "hmac", "i1", "rotated", "s/1").String() {
			t.Errorf("%s, %v", id, err)
		}
	}
	event.TenantID = strings.Repeat("x", outbox.MaxIDLength+1)
	if _, err := publisher.Publish(t.Context(), event); !errors.Is(err, hmac.ErrInput) || !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("a bad event: %v", err)
	}
	event.TenantID = "contoso"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := publisher.Publish(ended, hmac.Event{TenantID: "contoso", Type: "x", Payload: []byte(`1`)}); errors.Is(err, hmac.ErrInput) {
		t.Errorf("a passing error: %v", err)
	}
}
