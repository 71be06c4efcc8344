package query

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// MaxCarried bounds the content of an object that is carried, in bytes of JSON.
	MaxCarried = 512 << 10
	// MostCarriedKeys bounds its keys.
	MostCarriedKeys = 1000
)

// CarriedObject is the content of a ConfigMap or Secret.
type CarriedObject struct {
	// Type is that of a Secret.
	Type string            `json:"type,omitempty"`
	Text map[string]string `json:"text,omitempty"` // of a ConfigMap
	Data map[string][]byte `json:"data,omitempty"`
	// Digest is Sum, from who has read the object. It detects damage, and no forgery.
	Digest string `json:"digest"`
}

// Sum is the digest of the content; it refuses a content that is too large.
func (o CarriedObject) Sum() (string, error) {
	if keys := len(o.Text) + len(o.Data); keys > MostCarriedKeys {
		return "", fmt.Errorf("has %d keys; at most %d are carried", keys, MostCarriedKeys)
	}
	o.Digest = ""
	encoded, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode what is carried: %w", err)
	}
	if len(encoded) > MaxCarried {
		return "", fmt.Errorf("has %d bytes; at most %d are carried", len(encoded), MaxCarried)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

// Check returns why the content is not that of the digest: it was damaged on its way. It proves
// nothing about who has made it, because who changes the content can change the digest, too.
func (o CarriedObject) Check() error {
	sum, err := o.Sum()
	if err != nil {
		return err
	}
	if sum != o.Digest {
		return errors.New("the content has another digest")
	}
	return nil
}
