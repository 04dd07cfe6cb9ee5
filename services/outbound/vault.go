package outbound

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/pkcs12"

	"github.com/vibedata/roundhouse/internal/keytext"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// readKeys reads keys, in the order of the settings, from secrets in the forms of outbox.ParseSigningKey.
func readKeys(ctx context.Context, vault Vault, of []SigningKey) ([]outbox.SigningKey, error) {
	var keys []outbox.SigningKey
	for _, named := range of {
		value, err := secrets.Newest(ctx, vault, named.Secret)
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", named.ID, err)
		}
		key, err := outbox.ParseSigningKey(named.ID, string(value))
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", named.Secret, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readCertificate reads a certificate with its key. Key Vault returns it as PEM, or as PKCS #12 in base64. The parsers'
// own errors are left out: they quote secrets.
func readCertificate(ctx context.Context, vault Vault, name string) (tls.Certificate, error) {
	value, err := secrets.Newest(ctx, vault, name)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("client certificate: %w", err)
	}
	certificate, ok := parseCertificate(value)
	if !ok {
		return tls.Certificate{}, fmt.Errorf("client certificate: secret %s: %w", name, ErrCertificate)
	}
	return certificate, nil
}

// parseCertificate finds the certificate of the key. It becomes the first of the chain, wherever the file has it.
func parseCertificate(text []byte) (tls.Certificate, bool) {
	var chain []*pem.Block
	var key []byte
	for _, block := range blocksOf(text) {
		switch {
		case block.Type == "CERTIFICATE":
			chain = append(chain, block)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			key = pem.EncodeToMemory(block)
		}
	}
	for i := range chain {
		ordered := append([]*pem.Block{chain[i]}, slices.Delete(slices.Clone(chain), i, i+1)...)
		var file []byte
		for _, block := range ordered {
			file = append(file, pem.EncodeToMemory(block)...)
		}
		if found, err := tls.X509KeyPair(file, key); err == nil {
			return found, true
		}
	}
	return tls.Certificate{}, false
}

// blocksOf returns the blocks of PEM, or of PKCS #12 without its attributes; none for other texts.
func blocksOf(text []byte) []*pem.Block {
	var blocks []*pem.Block
	if raw, err := keytext.Base64(string(text)); err == nil {
		text = raw
	}
	if file, err := pkcs12.ToPEM(text, ""); err == nil {
		for _, block := range file {
			blocks = append(blocks, &pem.Block{Type: block.Type, Bytes: block.Bytes})
		}
		return blocks
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, &pem.Block{Type: block.Type, Bytes: block.Bytes})
	}
	return blocks
}
