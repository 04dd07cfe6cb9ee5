package outbound

import (
	"context"
	"sync"

	"github.com/vibedata/roundhouse/outbox"
)

// maxInstances bounds the instances whose keys are kept. With more, keys are looked up again, which costs time and no more.
const maxInstances = 10_000

// InstanceKeys are signing keys of instances. It is safe for concurrent use.
type InstanceKeys struct {
	clients *Clients
	auth    Auth

	mu   sync.Mutex
	keys map[string]outbox.SigningKeys
}

// InstanceKeys looks up the signing keys of instances, in the vault (see Auth.For), as Keys does.
func (c *Clients) InstanceKeys(a Auth) *InstanceKeys {
	return &InstanceKeys{clients: c, auth: a, keys: map[string]outbox.SigningKeys{}}
}

// Of are the keys of an instance, those that are for all among them; of "", only these. The instance has to be known to exist: the
// vault is asked for each.
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
