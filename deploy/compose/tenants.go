package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/deploy/nats/access"
)

// The flags that make a tenant, or the controller of an AdmissionCheck.
const (
	kindTenant  = "tenant"
	kindNamed   = "named-tenant"
	kindChecker = "checker"
)

// tenant is a submitter, or a checker, from the arguments of this or an earlier run.
type tenant struct {
	kind, text string // the flag and its value
	user       access.User
}

func parseTenant(kind, text string) (tenant, error) {
	if kind == kindChecker {
		user, err := access.Checker(text)
		return tenant{kind, text, user}, err
	}
	name, queues, _ := strings.Cut(text, "=")
	newUser := access.Tenant
	switch kind {
	case kindTenant:
	case kindNamed:
		newUser = access.NamedTenant
	default:
		return tenant{}, fmt.Errorf("%q: want %s, %s or %s", kind, kindTenant, kindNamed, kindChecker)
	}
	user, err := newUser(name, strings.Split(queues, ",")...)
	return tenant{kind, text, user}, err
}

// tokens makes a bearer token of the HTTP API for the operator and for each tenant, and the
// list of names and hashes that intake reads.
func tokens(dir string, tenants []tenant) error {
	names := []string{access.Operator}
	for _, t := range tenants {
		if t.kind != kindChecker { // it answers over NATS
			names = append(names, t.user.Name)
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
