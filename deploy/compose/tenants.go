package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/users"
)

// tokens makes a bearer token of the HTTP API for the operator and for each tenant, and the
// list of names and hashes that intake reads.
func tokens(dir string, tenants []users.Tenant) error {
	names := []string{access.Operator}
	for _, t := range tenants {
		if t.Submits() { // the others use NATS alone
			names = append(names, t.User.Name)
		}
	}
	var list strings.Builder
	for _, name := range names {
		token, err := password(dir, name+".token")
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "- {name: %s, sha256: %x}\n", name, sha256.Sum256(token))
	}
	return os.WriteFile(filepath.Join(dir, "tokens.yaml"), []byte(list.String()), 0o644)
}
