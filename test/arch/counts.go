package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Counts are figures on the size and the order of a tree, to be compared before and after it
// is changed as a whole. Tests count as lines only.
type Counts struct {
	Modules, Packages int
	// Lines and TestLines are of Go files of the workspace.
	Lines, TestLines int
	// Exported are names that other packages can use: of types, functions, constants and
	// variables, and of methods of such types.
	Exported int
	// Wide are interfaces that declare more than mostMethods.
	Wide int
	// Retired are breaches of the list of retired words.
	Retired int
	// Methods are those of each type, by package and name.
	Methods map[string]int
	// Files are the calls between the files of the ordered packages that there are.
	Files map[string]Arrows
}

// Arrows counts the pairs of files of which one calls the other.
type Arrows struct {
	All int
	// Circular are on a circle: there is no order of the files in which they lead forward.
	Circular int
}

// Count counts the tree with a go.work at root. Of its packages it looks at the calls in those
// that are named.
func Count(root string, between []string) (Counts, error) {
	graph, err := Load(root, false, "work")
	if err != nil {
		return Counts{}, err
	}
	c := Counts{Methods: map[string]int{}, Files: map[string]Arrows{}}
	if c.Modules, err = modulesBelow(root); err != nil {
		return Counts{}, err
	}
	for _, pkg := range graph.Ours() {
		if err := c.add(pkg); err != nil {
			return Counts{}, err
		}
	}
	between = slices.DeleteFunc(slices.Clone(between), func(path string) bool { return graph[prefix+path] == nil })
	if len(between) == 0 {
		return c, nil
	}
	imports, err := compiled(root, between...)
	if err != nil {
		return Counts{}, err
	}
	for _, path := range between {
		calls, err := callsBetween(graph[prefix+path], imports)
		if err != nil {
			return Counts{}, err
		}
		c.Files[path] = arrowsOf(calls)
	}
	return c, nil
}

// Ordered lists the packages whose files have an order.
func Ordered() []string { return ordered() }

// add counts a package.
func (c *Counts) add(pkg *Package) error {
	c.Packages++
	tests := slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles)
	for _, name := range slices.Concat(pkg.GoFiles, tests) {
		content, err := os.ReadFile(filepath.Join(pkg.Dir, name))
		if err != nil {
			return fmt.Errorf("count the lines of %s: %w", pkg.Short(), err)
		}
		if lines := bytes.Count(content, []byte("\n")); slices.Contains(tests, name) {
			c.TestLines += lines
		} else {
			c.Lines += lines
		}
	}
	all, err := parseNamed(pkg, slices.Concat(pkg.GoFiles, tests))
	if err != nil {
		return err
	}
	files := all[:len(pkg.GoFiles)]
	c.Retired += len(checkRetired(pkg.Short(), files, retiredWords())) + len(checkRetiredComments(pkg.Short(), all, retiredWords()))
	c.Wide += len(checkInterfaces(pkg.Short(), files, nil))
	for _, f := range files {
		c.addDeclarations(pkg, f.syntax)
	}
	return nil
}

// addDeclarations counts what a file declares. Nothing imports a command.
func (c *Counts) addDeclarations(pkg *Package, syntax *ast.File) {
	export := func(names ...string) {
		if pkg.Name != "main" && !slices.ContainsFunc(names, func(name string) bool { return !ast.IsExported(name) }) {
			c.Exported++
		}
	}
	for _, declaration := range syntax.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			receiver := receiverOf(d)
			if receiver == "" {
				export(d.Name.Name)
				continue
			}
			c.Methods[pkg.Short()+"."+receiver]++
			export(receiver, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch declared := spec.(type) {
				case *ast.TypeSpec:
					export(declared.Name.Name)
				case *ast.ValueSpec:
					for _, name := range declared.Names {
						export(name.Name)
					}
				}
			}
		}
	}
}

// arrowsOf counts the pairs of files between which calls lead.
func arrowsOf(calls []call) Arrows {
	next := map[string]map[string]bool{}
	for _, c := range calls {
		if next[c.from] == nil {
			next[c.from] = map[string]bool{}
		}
		next[c.from][c.to] = true
	}
	leads := func(from, to string) bool {
		seen, queue := map[string]bool{from: true}, []string{from}
		for ; len(queue) > 0 && !seen[to]; queue = queue[1:] {
			for file := range next[queue[0]] {
				if !seen[file] {
					seen[file], queue = true, append(queue, file)
				}
			}
		}
		return seen[to]
	}
	var arrows Arrows
	for from, to := range next {
		for file := range to {
			arrows.All++
			if leads(file, from) {
				arrows.Circular++
			}
		}
	}
	return arrows
}

// modulesBelow counts the Go modules of a tree, test data aside.
func modulesBelow(root string) (modules int, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git" || entry.Name() == ".devstate"):
			return filepath.SkipDir
		case entry.Name() == "go.mod":
			modules++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count the modules: %w", err)
	}
	return modules, nil
}

// mostTypes is how many of the types with the most methods are printed.
const mostTypes = 5

// String returns the rows of a table.
func (c Counts) String() string {
	var b strings.Builder
	row := func(what string, figure any) { fmt.Fprintf(&b, "| %s | %v |\n", what, figure) }
	row("modules", c.Modules)
	row("packages", c.Packages)
	row("lines of code", c.Lines)
	row("lines of tests", c.TestLines)
	row("exported names", c.Exported)
	row(fmt.Sprintf("interfaces of more than %d methods", mostMethods), c.Wide)
	row("retired words", c.Retired)
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		row("calls between files of "+path, fmt.Sprintf("%d, %d on a circle", c.Files[path].All, c.Files[path].Circular))
	}
	types := slices.SortedFunc(maps.Keys(c.Methods), func(x, y string) int {
		if c.Methods[x] != c.Methods[y] {
			return c.Methods[y] - c.Methods[x]
		}
		return strings.Compare(x, y)
	})
	for _, name := range types[:min(len(types), mostTypes)] {
		row("methods of "+name, c.Methods[name])
	}
	return b.String()
}
