package arch

import (
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
)

var sequentialLine = regexp.MustCompile(`(?m)^sequential='(.+)'$`)

// sequential returns the pattern of the packages whose tests the script runs without
// the race detector.
func sequential(script []byte) (*regexp.Regexp, error) {
	found := sequentialLine.FindSubmatch(script)
	if found == nil {
		return nil, fmt.Errorf("no line %s", sequentialLine)
	}
	return regexp.Compile(string(found[1]))
}

// concurrency returns a sentence for each statement that starts a goroutine, and for
// each import of what such code needs: the race detector has work there.
func concurrency(pkg *Package, files []file) (breaches []string) {
	for _, f := range files {
		for _, imported := range f.syntax.Imports {
			if path, _ := strconv.Unquote(imported.Path.Value); under("sync")(path) || under("golang.org/x/sync")(path) {
				breaches = append(breaches, fmt.Sprintf("%s/%s imports %s: test/run.sh takes it for sequential", pkg.Short(), f.name, path))
			}
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if start, is := node.(*ast.GoStmt); is {
				breaches = append(breaches, fmt.Sprintf("%s/%s:%d starts a goroutine: test/run.sh takes it for sequential", pkg.Short(), f.name, f.set.Position(start.Pos()).Line))
			}
			return true
		})
	}
	return breaches
}
