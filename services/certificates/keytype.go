package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/services/secrets"
)

// KeyType is the type of a certificate's key: RSA with the bits of its modulus, or EC with its curve.
type KeyType string

// The key types that public authorities accept.
const (
	RSA2048 KeyType = "RSA-2048"
	RSA3072 KeyType = "RSA-3072"
	RSA4096 KeyType = "RSA-4096"
	ECP256  KeyType = "EC-P256"
	ECP384  KeyType = "EC-P384"
)

// DefaultKeyType is the type when no other is configured.
const DefaultKeyType = ECP256

// KeyTypes returns all of them.
func KeyTypes() []KeyType { return []KeyType{RSA2048, RSA3072, RSA4096, ECP256, ECP384} }

// Validate returns an error for a type that is not in KeyTypes.
func (k KeyType) Validate() error {
	if slices.Contains(KeyTypes(), k) {
		return nil
	}
	return fmt.Errorf("%w: key type %.32q: there are %v", secrets.ErrInvalid, string(k), KeyTypes())
}

// KeyTypeOf returns the type of a public key; "" for one that is not in KeyTypes.
func KeyTypeOf(key crypto.PublicKey) KeyType {
	switch key := key.(type) {
	case *rsa.PublicKey:
		for _, k := range KeyTypes() {
			if k.bits() == key.N.BitLen() {
				return k
			}
		}
	case *ecdsa.PublicKey:
		for _, k := range KeyTypes() {
			if k.curve() == key.Curve {
				return k
			}
		}
	}
	return ""
}

// bits returns those of an RSA key's modulus, 0 for others.
func (k KeyType) bits() int {
	return map[KeyType]int{RSA2048: 2048, RSA3072: 3072, RSA4096: 4096}[k]
}

// curve returns that of an EC key, nil for others.
func (k KeyType) curve() elliptic.Curve {
	return map[KeyType]elliptic.Curve{ECP256: elliptic.P256(), ECP384: elliptic.P384()}[k]
}

// Generate makes a key.
func (k KeyType) Generate() (crypto.Signer, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	if curve := k.curve(); curve != nil {
		return ecdsa.GenerateKey(curve, rand.Reader)
	}
	return rsa.GenerateKey(rand.Reader, k.bits())
}
