package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// caRoots returns Mozilla's certificate authorities as one PEM file. They come from a
// pinned module and not from this machine, so that every build has the same. It leaves out
// authorities with constraints, which a PEM file cannot express.
func caRoots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
	}
	return text.Bytes()
}
