package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// keepTenants returns the given tenants and those of earlier runs with other names, and
// saves them for later runs: `make up` rewrites the accounts, and would drop tenants that
// it does not know.
func keepTenants(dir string, given []tenant) ([]tenant, error) {
	file := filepath.Join(dir, "tenants")
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []tenant
	for line := range strings.Lines(string(content)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "" {
			continue
		}
		t, err := parseTenant(kind, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, t)
	}
	for _, t := range given {
		all = slices.DeleteFunc(all, func(other tenant) bool { return other.user.Name == t.user.Name })
		all = append(all, t)
	}
	var lines strings.Builder
	for _, t := range all {
		fmt.Fprintf(&lines, "%s %s\n", t.kind, t.text)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return all, os.WriteFile(file, []byte(lines.String()), 0o644)
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
