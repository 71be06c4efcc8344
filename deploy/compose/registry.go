package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// registry is what the directory has users for: clusters, tenants and checkers. Each run
// writes the accounts of NATS again, so it keeps those of earlier runs.
type registry struct {
	clusters []string
	tenants  []tenant
}

// The files of a registry have an entry a line.
const (
	clustersFile = "clusters"
	tenantsFile  = "tenants"
)

func readRegistry(dir string) (r registry, err error) {
	if r.clusters, err = linesOf(filepath.Join(dir, clustersFile)); err != nil {
		return r, err
	}
	file := filepath.Join(dir, tenantsFile)
	lines, err := linesOf(file)
	if err != nil {
		return r, err
	}
	for _, line := range lines {
		kind, text, _ := strings.Cut(line, " ")
		t, err := parseTenant(kind, text)
		if err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		r.tenants = append(r.tenants, t)
	}
	return r, nil
}

func (r registry) write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var tenants strings.Builder
	for _, t := range r.tenants {
		fmt.Fprintf(&tenants, "%s %s\n", t.kind, t.text)
	}
	if err := os.WriteFile(filepath.Join(dir, tenantsFile), []byte(tenants.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, clustersFile), []byte(strings.Join(r.clusters, "\n")+"\n"), 0o644)
}

// add adds clusters and tenants, and prints what that changes. A tenant of a known name gets
// the new queues.
func (r *registry) add(out io.Writer, clusters []string, tenants []tenant) {
	if len(clusters)+len(r.clusters) == 0 {
		clusters = []string{local}
	}
	for _, name := range clusters {
		if !slices.Contains(r.clusters, name) {
			r.clusters = append(r.clusters, name)
			fmt.Fprintf(out, "added cluster %s\n", name)
		}
	}
	for _, t := range tenants {
		i := slices.IndexFunc(r.tenants, func(other tenant) bool { return other.user.Name == t.user.Name })
		switch {
		case i < 0:
			r.tenants = append(r.tenants, t)
			fmt.Fprintf(out, "added %s %s\n", t.kind, t.text)
		case r.tenants[i].kind != t.kind || r.tenants[i].text != t.text:
			fmt.Fprintf(out, "changed %s %s to %s %s\n", r.tenants[i].kind, r.tenants[i].text, t.kind, t.text)
			r.tenants[i] = t
		}
	}
}

// remove removes a cluster, a tenant or a checker, given as "cluster=east", "tenant=team-a" or
// "checker=budget", with its keys, and prints it.
func (r *registry) remove(out io.Writer, dir, what string) error {
	kind, name, _ := strings.Cut(what, "=")
	var users []string
	switch kind {
	case "cluster":
		i := slices.Index(r.clusters, name)
		if i < 0 {
			return fmt.Errorf("remove cluster %q: it is none of %s", name, strings.Join(r.clusters, ", "))
		}
		r.clusters = slices.Delete(r.clusters, i, i+1)
		users = []string{"capacity-watcher-" + name, "dispatcher-" + name}
	case kindTenant, kindChecker:
		user := kind + "-" + name
		i := slices.IndexFunc(r.tenants, func(t tenant) bool { return t.user.Name == user })
		if i < 0 {
			return fmt.Errorf("remove %s %q: there is no user %s", kind, name, user)
		}
		r.tenants, users = slices.Delete(r.tenants, i, i+1), []string{user}
	default:
		return fmt.Errorf("remove %q: want cluster=NAME, %s=NAME or %s=NAME", what, kindTenant, kindChecker)
	}
	for _, user := range users {
		for _, key := range []string{".nk", ".token"} {
			if err := os.Remove(filepath.Join(dir, user+key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
