package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// prefix of all import paths of this repository.
const prefix = "muster.dev/muster/"

// Package is what go list reports of one package.
type Package struct {
	ImportPath, Name, Dir string
	Standard              bool
	GoFiles, TestGoFiles  []string
	XTestGoFiles          []string
	Imports               []string // of the package itself
	TestImports           []string
	XTestImports          []string
}

// Short is the import path without the repository's prefix.
func (p *Package) Short() string { return strings.TrimPrefix(p.ImportPath, prefix) }

// Ours reports whether the package is of this repository.
func (p *Package) Ours() bool { return strings.HasPrefix(p.ImportPath, prefix) }

// Graph is packages and all that they import, by import path.
type Graph map[string]*Package

// Ours lists the repository's packages by path.
func (g Graph) Ours() []*Package {
	var ours []*Package
	for _, pkg := range g {
		if pkg.Ours() {
			ours = append(ours, pkg)
		}
	}
	slices.SortFunc(ours, func(a, b *Package) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return ours
}

// Chain returns the shortest way of imports from a package to one that match
// accepts, both included; nil when there is none. Tests' imports do not count.
func (g Graph) Chain(from string, match func(string) bool) []string {
	via, queue := map[string]string{from: ""}, []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at != from && match(at) {
			var chain []string
			for step := at; step != ""; step = via[step] {
				chain = append(chain, step)
			}
			slices.Reverse(chain)
			return chain
		}
		pkg, known := g[at]
		if !known || pkg.Standard {
			continue
		}
		for _, next := range pkg.Imports {
			if _, seen := via[next]; !seen {
				via[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// Load reads the packages that the patterns name in dir, and all that they
// import. With alone the module is read without the workspace.
func Load(dir string, alone bool, patterns ...string) (Graph, error) {
	return list(dir, alone, append([]string{"-deps"}, patterns...)...)
}

// list runs go list in dir.
func list(dir string, alone bool, args ...string) (Graph, error) {
	const fields = "-json=ImportPath,Name,Dir,Standard,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
	command := exec.Command("go", append([]string{"list", fields}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "PWD="+dir)
	if alone {
		command.Env = append(command.Env, "GOWORK=off")
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s in %q: %w: %s", command, dir, err, stderr.String())
	}
	graph := Graph{}
	for decoder := json.NewDecoder(bytes.NewReader(stdout)); ; {
		pkg := &Package{}
		err := decoder.Decode(pkg)
		if errors.Is(err, io.EOF) {
			return graph, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of packages in %q: %w", dir, err)
		}
		graph[pkg.ImportPath] = pkg
	}
}

// Root finds the repository's top folder, the one with go.work, above the
// working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for from := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work above %q", from)
		}
	}
}
