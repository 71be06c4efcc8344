package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
)

// commentName is how comments name code of another package: package, then function, type,
// constant or variable, and after a type maybe its method or field.
var commentName = regexp.MustCompile(`(?:^|[\s(])([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// exportedNames are the names that packages of ours declare, by name of package. Packages
// of one name share an entry.
type exportedNames map[string]map[string]bool

func (x exportedNames) add(pkg *Package, files []file) {
	if x[pkg.Name] == nil {
		x[pkg.Name] = map[string]bool{}
	}
	note := func(names ...*ast.Ident) {
		for _, name := range names {
			x[pkg.Name][name.Name] = true
		}
	}
	for _, f := range files {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				note(n.Name)
				return false // what a function declares inside is its own
			case *ast.TypeSpec:
				note(n.Name)
			case *ast.ValueSpec:
				note(n.Names...)
			case *ast.Field: // of a struct or an interface
				note(n.Names...)
			}
			return true
		})
	}
}

// checkCommentNames returns a sentence for each name of code in the comments of a package
// that its package does not declare. Names of packages that are not ours are left out.
func checkCommentNames(folder string, files []file, declared exportedNames) (breaches []string) {
	for _, f := range files {
		others := map[string]bool{}    // packages that are not ours
		aliases := map[string]string{} // of packages that are
		for _, spec := range f.syntax.Imports {
			switch imported := strings.Trim(spec.Path.Value, `"`); {
			case !strings.HasPrefix(imported, prefix):
				others[importedAs(f.syntax, imported)] = true
			case spec.Name != nil:
				aliases[spec.Name.Name] = path.Base(imported)
			}
		}
		for _, group := range f.syntax.Comments {
			for _, match := range commentName.FindAllStringSubmatch(group.Text(), -1) {
				names, ours := declared[cmp.Or(aliases[match[1]], match[1])]
				if !ours || others[match[1]] || names[match[2]] && (match[3] == "" || names[match[3]]) {
					continue
				}
				breaches = append(breaches, fmt.Sprintf("%s/%s:%d names %s in a comment, which does not exist",
					folder, f.name, f.set.Position(group.Pos()).Line, strings.TrimLeft(match[0], " \n\t(")))
			}
		}
	}
	return breaches
}
