package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
)

// cared lists what package sync has for code that is concurrent. Its other types, such as
// Once and Map, need no care of those who use them.
func cared() []string {
	return []string{"Mutex", "RWMutex", "WaitGroup", "Cond", "NewCond", "Pool"}
}

// support lists the folders of what serves a laptop, tests and benchmarks: without the race
// detector, because most of their tests wait for programs.
func support() []string {
	return []string{"pkg/local", "pkg/testkit", composer, ledgerBench}
}

// concurrency returns a place for each statement that starts a goroutine or a timer with a
// function, and for each use of what such code needs: the race detector has work there.
func concurrency(pkg *Package, files []file) (places []string) {
	for _, f := range files {
		for _, imported := range f.syntax.Imports {
			if path, _ := strconv.Unquote(imported.Path.Value); path != "sync" && under("sync")(path) || under("golang.org/x/sync")(path) {
				places = append(places, fmt.Sprintf("%s/%s imports %s", pkg.Short(), f.name, path))
			}
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			line := func() int { return f.set.Position(node.Pos()).Line }
			switch node := node.(type) {
			case *ast.GoStmt:
				places = append(places, fmt.Sprintf("%s/%s:%d starts a goroutine", pkg.Short(), f.name, line()))
			case *ast.SelectorExpr:
				of, is := node.X.(*ast.Ident)
				switch {
				case is && of.Name == "time" && node.Sel.Name == "AfterFunc":
					places = append(places, fmt.Sprintf("%s/%s:%d starts a timer", pkg.Short(), f.name, line()))
				case is && of.Name == "sync" && slices.Contains(cared(), node.Sel.Name):
					places = append(places, fmt.Sprintf("%s/%s:%d uses sync.%s", pkg.Short(), f.name, line(), node.Sel.Name))
				}
			}
			return true
		})
	}
	return places
}
