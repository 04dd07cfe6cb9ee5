// Package random draws random values.
package random

import (
	crand "crypto/rand"
	"crypto/rsa"
	"hash/maphash"
	oldrand "math/rand"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/orchestrator"
)

var _ = orchestrator.NewOrchestrator("random", func(ctx *orchestrator.Context, in int) (string, error) {
	_ = oldrand.Intn(in)                                // want `calls rand\.Intn: use ctx\.Rand\(\), or an activity for secrets`
	_ = oldrand.New(oldrand.NewSource(oldrand.Int63())) // want `calls rand\.Int63: `
	_ = rand.New(rand.NewPCG(1, rand.Uint64()))         // want `calls rand\.Uint64: `
	oldrand.Seed(int64(in))                             // want `calls rand\.Seed: `
	_ = rand.IntN(in)                                   // want `calls rand\.IntN: `
	_ = rand.N(in)                                      // want `calls rand\.N: `
	rand.Shuffle(in, func(i, j int) {})                 // want `calls rand\.Shuffle: `
	_, _ = crand.Read(nil)                              // want `calls rand\.Read: `
	_, _ = rsa.GenerateKey(crand.Reader, 2048)          // want `calls rsa\.GenerateKey: make keys in an activity` `uses rand\.Reader: `
	_ = maphash.MakeSeed()                              // want `calls maphash\.MakeSeed: `
	_ = uuid.New()                                      // want `calls uuid\.New: use ctx\.NewUUID\(\)`
	_, _ = uuid.NewV7()                                 // want `calls uuid\.NewV7: use ctx\.NewUUID\(\)`
	_ = uuid.Must(uuid.NewRandom())                     // want `calls uuid\.NewRandom: `
	return uuid.NewString(), nil                        // want `calls uuid\.NewString: `
})

var (
	shared = rand.New(rand.NewPCG(1, 2))
	source = oldrand.NewSource(1)
)

// The values of a shared source depend on the number of runs.
var _ = orchestrator.NewOrchestrator("shared", func(ctx *orchestrator.Context, in int) (int, error) {
	return shared.IntN(in) + oldrand.New(source).Intn(in), nil // want `writes the package variable random\.shared: ` `writes the package variable random\.source: `
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (string, error) {
	space, err := uuid.Parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	if err != nil {
		return "", err
	}
	seeded := rand.New(rand.NewPCG(uint64(in), 42))
	old := oldrand.New(oldrand.NewSource(ctx.Now().UnixNano()))
	chacha := rand.New(rand.NewChaCha8([32]byte{1}))
	chacha.Shuffle(in, func(i, j int) {})
	if seeded.IntN(6) == old.Intn(6) && rand.NewZipf(chacha, 2, 1, 6).Uint64() == 3 {
		return "", nil
	}
	r := ctx.Rand()
	r.Shuffle(in, func(i, j int) {})
	if r.IntN(in) == 0 {
		return uuid.NewSHA1(space, []byte("name")).String(), nil
	}
	return ctx.NewUUID().String(), nil
})
