package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ordered lists the packages whose files have an order in which calls lead to later files
// only: a reader who follows a decision goes on from file to file and never back.
func ordered() []string {
	return []string{"pkg/decide/admission", "pkg/decide/placement", "pkg/decide/quota", "pkg/state"}
}

// call is a use of a function or method that another file of the package declares.
type call struct{ from, to, caller, callee string }

func (c call) String() string {
	return fmt.Sprintf("%s calls %s: %s in %s", c.from, c.to, c.callee, c.caller)
}

// callsBetween lists the calls between the files of a package. It leaves out those through an
// interface or a variable, which name no file.
func callsBetween(pkg *Package, imports types.Importer) ([]call, error) {
	parsed, err := parseNamed(pkg, pkg.GoFiles)
	if err != nil || len(parsed) == 0 {
		return nil, err
	}
	set, syntax := parsed[0].set, make([]*ast.File, len(parsed))
	for i, f := range parsed {
		syntax[i] = f.syntax
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: imports}).Check(pkg.ImportPath, set, syntax, info)
	if err != nil {
		return nil, fmt.Errorf("check the types of %s: %w", pkg.ImportPath, err)
	}
	calls := map[call]bool{}
	for _, f := range parsed {
		for _, declared := range f.syntax.Decls {
			ast.Inspect(declared, func(node ast.Node) bool {
				name, is := node.(*ast.Ident)
				if !is {
					return true
				}
				callee, is := info.Uses[name].(*types.Func)
				if !is || callee.Pkg() != checked {
					return true
				}
				if of := callee.Signature().Recv(); of != nil && types.IsInterface(of.Type()) {
					return true
				}
				if to := filepath.Base(set.Position(callee.Pos()).Filename); to != f.name {
					calls[call{f.name, to, declaredName(declared), callee.Name()}] = true
				}
				return true
			})
		}
	}
	return slices.SortedFunc(maps.Keys(calls), func(a, b call) int { return strings.Compare(a.String(), b.String()) }), nil
}

func declaredName(declared ast.Decl) string {
	if function, is := declared.(*ast.FuncDecl); is {
		return function.Name.Name
	}
	return "a variable"
}

// circle returns calls that lead from a file through others back to it, the shortest way
// there is; nil when there are none.
func circle(calls []call) []call {
	var shortest []call
	for _, from := range calls {
		way, queue := map[string][]call{from.to: {from}}, []string{from.to}
		for ; len(queue) > 0 && way[from.from] == nil; queue = queue[1:] {
			for _, next := range calls {
				if next.from == queue[0] && way[next.to] == nil {
					way[next.to] = append(slices.Clip(way[queue[0]]), next)
					queue = append(queue, next.to)
				}
			}
		}
		if back := way[from.from]; back != nil && (shortest == nil || len(back) < len(shortest)) {
			shortest = back
		}
	}
	return shortest
}

// fileGroups reads the groups of files, from the top down, that a package comment lists under
// "Files"; nil when it has no such list.
func fileGroups(comment string) map[string]int {
	_, section, found := strings.Cut(comment, "# Files\n")
	if !found {
		return nil
	}
	section, _, _ = strings.Cut(section, "\n# ")
	groups, number := map[string]int{}, 0
	for line := range strings.Lines(section) {
		names, listed := strings.CutPrefix(line, "\t")
		if !listed {
			continue
		}
		if !strings.HasPrefix(names, " ") { // the name of a group
			number++
			_, names, _ = strings.Cut(names, " ")
		}
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.TrimSpace(name); name != "" {
				groups[name+".go"] = number
			}
		}
	}
	return groups
}

// checkFileGroups returns a sentence for each file that the list lacks or has too many, and
// for each call from a group to an earlier one.
func checkFileGroups(groups map[string]int, files []string, calls []call) (breaches []string) {
	for _, name := range files {
		if groups[name] == 0 && name != "doc.go" {
			breaches = append(breaches, fmt.Sprintf("the list of files in doc.go lacks %s", name))
		}
	}
	for name := range groups {
		if !slices.Contains(files, name) {
			breaches = append(breaches, fmt.Sprintf("the list of files in doc.go has %s, which does not exist", name))
		}
	}
	for _, c := range calls {
		if groups[c.to] > 0 && groups[c.to] < groups[c.from] {
			breaches = append(breaches, fmt.Sprintf("%s, and doc.go has %s in an earlier group", c, c.to))
		}
	}
	slices.Sort(breaches)
	return breaches
}

// compiled returns what the compiler knows of the packages and of all that they import.
func compiled(root string, packages ...string) (types.Importer, error) {
	arguments := []string{"list", "-trimpath", "-export", "-deps", "-json=ImportPath,Export"}
	for _, pkg := range packages {
		arguments = append(arguments, "./"+pkg)
	}
	command := exec.Command("go", arguments...)
	command.Dir, command.Stderr = root, os.Stderr
	stdout, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s in %q: %w", command, root, err)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(stdout))); ; {
		var pkg struct{ ImportPath, Export string }
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of compiled packages: %w", err)
		}
		exports[pkg.ImportPath] = pkg.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	}), nil
}
