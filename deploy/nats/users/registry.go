// Package users keeps for which clusters, tenants, checkers and intakes an installation has users of
// NATS, in files of the directory that has their keys, and writes the keys and the accounts.
//
// It is not for what a user may do (package access), nor for an installation that keeps keys
// in a secret store.
package users

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
)

// Registry is what the directory has users for: clusters, tenants, checkers and intakes. Each change
// writes the accounts of NATS again, so it keeps those of earlier ones.
type Registry struct {
	dir      string
	Clusters []string
	Tenants  []Tenant
}

// AccountsFile is what a directory has for the NATS servers, once a registry is written there.
const AccountsFile = "accounts.conf"

// The files of a registry have an entry a line.
const (
	clustersFile = "clusters"
	tenantsFile  = "tenants"
)

// Read reads the registry of a directory; an empty one where there is none.
func Read(dir string) (r Registry, err error) {
	r.dir = dir
	if r.Clusters, err = linesOf(filepath.Join(dir, clustersFile)); err != nil {
		return r, err
	}
	file := filepath.Join(dir, tenantsFile)
	lines, err := linesOf(file)
	if err != nil {
		return r, err
	}
	for _, line := range lines {
		kind, text, _ := strings.Cut(line, " ")
		t, err := ParseTenant(kind, text)
		if err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		r.Tenants = append(r.Tenants, t)
	}
	return r, nil
}

// Write makes the keys that are missing, writes accounts.conf for the NATS servers, and then
// stores the registry. After a failure the same change may be made again: the stored registry
// does not have it yet.
func (r Registry) Write() error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if err := r.writeAccounts(); err != nil {
		return err
	}
	var tenants strings.Builder
	for _, t := range r.Tenants {
		fmt.Fprintf(&tenants, "%s %s\n", t.Kind, t.Text)
	}
	if err := os.WriteFile(filepath.Join(r.dir, tenantsFile), []byte(tenants.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, clustersFile), []byte(strings.Join(r.Clusters, "\n")+"\n"), 0o644)
}

func (r Registry) writeAccounts() error {
	all := access.Users(r.Clusters...)
	for _, t := range r.Tenants {
		all = append(all, t.User)
	}
	names := make([]string, len(all))
	for i, user := range all {
		names[i] = user.Name
	}
	public, err := keys.Ensure(r.dir, names)
	if err != nil {
		return err
	}
	var accounts bytes.Buffer
	if err := access.WriteConfig(&accounts, all, public); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, AccountsFile), accounts.Bytes(), 0o644)
}

// Add adds clusters and tenants, and prints what that changes. A tenant of a known name gets
// the new queues.
func (r *Registry) Add(out io.Writer, clusters []string, tenants []Tenant) {
	for _, name := range clusters {
		if !slices.Contains(r.Clusters, name) {
			r.Clusters = append(r.Clusters, name)
			fmt.Fprintf(out, "added cluster %s\n", name)
		}
	}
	for _, t := range tenants {
		i := slices.IndexFunc(r.Tenants, func(other Tenant) bool { return other.User.Name == t.User.Name })
		switch {
		case i < 0:
			r.Tenants = append(r.Tenants, t)
			fmt.Fprintf(out, "added %s %s\n", t.Kind, t.Text)
		case r.Tenants[i].Kind != t.Kind || r.Tenants[i].Text != t.Text:
			fmt.Fprintf(out, "changed %s %s to %s %s\n", r.Tenants[i].Kind, r.Tenants[i].Text, t.Kind, t.Text)
			r.Tenants[i] = t
		}
	}
}

// Remove removes a cluster with its intake, a tenant, a checker, or the intake of a cluster, given
// as "cluster=east", "tenant=team-a", "checker=budget" or "intake=east", with its keys, and prints
// it.
func (r *Registry) Remove(out io.Writer, what string) error {
	kind, name, _ := strings.Cut(what, "=")
	var users []string
	switch kind {
	case "cluster":
		i := slices.Index(r.Clusters, name)
		if i < 0 {
			return fmt.Errorf("remove cluster %q: it is none of %s", name, strings.Join(r.Clusters, ", "))
		}
		r.Clusters = slices.Delete(r.Clusters, i, i+1)
		users = []string{access.CapacityWatcher(name), access.Dispatcher(name), access.MemberIntake(name)}
		r.Tenants = slices.DeleteFunc(r.Tenants, func(t Tenant) bool { return t.User.Name == access.MemberIntake(name) })
	case KindTenant, KindChecker, KindIntake:
		user := kind + "-" + name
		i := slices.IndexFunc(r.Tenants, func(t Tenant) bool { return t.User.Name == user })
		if i < 0 {
			return fmt.Errorf("remove %s %q: there is no user %s", kind, name, user)
		}
		r.Tenants, users = slices.Delete(r.Tenants, i, i+1), []string{user}
	default:
		return fmt.Errorf("remove %q: want cluster=NAME, %s=NAME, %s=NAME or %s=NAME", what, KindTenant, KindChecker, KindIntake)
	}
	for _, user := range users {
		for _, key := range []string{".nk", ".token"} {
			if err := os.Remove(filepath.Join(r.dir, user+key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove %s %q: %w", kind, name, err)
			}
		}
	}
	fmt.Fprintf(out, "removed %s %s and its keys\n", kind, name)
	return nil
}

// linesOf returns the lines of a file that are not empty; none if there is no file.
func linesOf(file string) (lines []string, err error) {
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
