package arch

import (
	"fmt"
	"go/ast"
	"strconv"
)

// concurrency returns a place for each statement that starts a goroutine or a timer with a
// function, and for each import of what such code needs: the race detector has work there.
func concurrency(pkg *Package, files []file) (places []string) {
	for _, f := range files {
		for _, imported := range f.syntax.Imports {
			if path, _ := strconv.Unquote(imported.Path.Value); under("sync")(path) || under("golang.org/x/sync")(path) {
				places = append(places, fmt.Sprintf("%s/%s imports %s", pkg.Short(), f.name, path))
			}
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			line := func() int { return f.set.Position(node.Pos()).Line }
			switch node := node.(type) {
			case *ast.GoStmt:
				places = append(places, fmt.Sprintf("%s/%s:%d starts a goroutine", pkg.Short(), f.name, line()))
			case *ast.SelectorExpr:
				if of, is := node.X.(*ast.Ident); is && of.Name == "time" && node.Sel.Name == "AfterFunc" {
					places = append(places, fmt.Sprintf("%s/%s:%d starts a timer", pkg.Short(), f.name, line()))
				}
			}
			return true
		})
	}
	return places
}
