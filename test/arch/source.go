package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// vague lists folder names that do not say what is in the folder.
func vague() []string {
	return []string{
		"common", "util", "utils", "helper", "helpers", "model", "models", "misc",
		"shared", "interfaces", "types", "lib", "tools",
	}
}

// clock lists what of package time reads the clock or waits; the rest is values.
func clock() []string {
	return []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
}

// CheckSource returns a sentence for each breach of the rules on the packages
// themselves: their names, their comments and, in the pure ones, the clock.
func CheckSource(packages []*Package) ([]string, error) {
	var breaches []string
	for _, pkg := range packages {
		for _, folder := range strings.Split(pkg.Short(), "/") {
			if slices.Contains(vague(), folder) {
				breaches = append(breaches, fmt.Sprintf("%s: the folder name %q does not say what is in it", pkg.Short(), folder))
			}
		}
		files, err := parse(pkg)
		if err != nil {
			return nil, err
		}
		if !commented(pkg, files) {
			breaches = append(breaches, fmt.Sprintf("%s has no package comment that says what it is for", pkg.Short()))
		}
		breaches = append(breaches, checkQuantities(pkg, files)...)
		if slices.Contains(pure(), pkg.Short()) || slices.Contains(timeless(), pkg.Short()) {
			breaches = append(breaches, clockReads(pkg, files)...)
		}
	}
	return breaches, nil
}

type file struct {
	name   string
	set    *token.FileSet
	syntax *ast.File
}

func parse(pkg *Package) ([]file, error) {
	names := pkg.GoFiles
	if len(names) == 0 { // a package of tests only
		names = slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles)
	}
	return parseNamed(pkg, names)
}

func parseNamed(pkg *Package, names []string) ([]file, error) {
	set := token.NewFileSet()
	var files []file
	for _, name := range names {
		syntax, err := parser.ParseFile(set, filepath.Join(pkg.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse %s of %s: %w", name, pkg.ImportPath, err)
		}
		files = append(files, file{name, set, syntax})
	}
	return files, nil
}

// commented reports whether a file has a package comment in Go's form. Packages
// without a Go file of this platform need none.
func commented(pkg *Package, files []file) bool {
	start := "Package " + pkg.Name + " "
	if pkg.Name == "main" {
		start = "Command "
	}
	return len(files) == 0 || slices.ContainsFunc(files, func(f file) bool {
		return f.syntax.Doc != nil && strings.HasPrefix(f.syntax.Doc.Text(), start)
	})
}

func clockReads(pkg *Package, files []file) []string {
	var breaches []string
	for _, f := range files {
		name := importedAs(f.syntax, "time")
		if name == "." {
			breaches = append(breaches, fmt.Sprintf("%s/%s imports time into its own names: times are values here", pkg.Short(), f.name))
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == name && slices.Contains(clock(), selector.Sel.Name) {
				at := f.set.Position(selector.Pos())
				breaches = append(breaches, fmt.Sprintf("%s/%s:%d uses time.%s: times are values here", pkg.Short(), f.name, at.Line, selector.Sel.Name))
			}
			return true
		})
	}
	return breaches
}

// majorVersion is the last part of an import path that does not name the package.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// importedAs is the name by which the file knows an import, or empty.
func importedAs(syntax *ast.File, importPath string) string {
	for _, spec := range syntax.Imports {
		if unquoted, err := strconv.Unquote(spec.Path.Value); err != nil || unquoted != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		if base := path.Base(importPath); !majorVersion.MatchString(base) {
			return base
		}
		return path.Base(path.Dir(importPath))
	}
	return ""
}
