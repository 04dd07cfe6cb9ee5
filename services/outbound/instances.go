package outbound

import (
	"context"
	"sync"

	"github.com/vibedata/roundhouse/outbox"
)

// maxInstances bounds the instances whose keys are cached. With more, keys are looked up again, which only costs time.
const maxInstances = 10_000

// InstanceKeys are signing keys of instances. It is safe for concurrent use.
type InstanceKeys struct {
	clients *Clients
	auth    Auth

	mu   sync.Mutex
	keys map[string]outbox.SigningKeys
}

// InstanceKeys returns the signing keys of instances in the vault (see Auth.For), like Keys.
func (c *Clients) InstanceKeys(a Auth) *InstanceKeys {
	return &InstanceKeys{clients: c, auth: a, keys: map[string]outbox.SigningKeys{}}
}

// Of returns the keys of an instance, those for all included; for "", only these. The instance must be known to exist:
// each costs a request to the vault.
func (k *InstanceKeys) Of(ctx context.Context, instanceID string) ([]outbox.SigningKey, error) {
	look := k.look(instanceID)
	if look == nil {
		return nil, nil
	}
	return look(ctx)
}

func (k *InstanceKeys) look(instanceID string) outbox.SigningKeys {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.keys[instanceID]
	if !ok {
		if len(k.keys) >= maxInstances {
			clear(k.keys)
		}
		found = k.clients.Keys(k.auth.For(instanceID))
		k.keys[instanceID] = found
	}
	return found
}
