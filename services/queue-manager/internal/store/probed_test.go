package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writes finds what changes a table in a text of SQL.
var writes = regexp.MustCompile(`\b(INSERT INTO|DELETE FROM|UPDATE [a-z])`)

// queuing is a function that adds statements to a batch.
type queuing struct {
	file   string
	writes bool     // by itself
	names  []string // all that it names, functions among them
}

// functions are the functions of the package by name, and the names of those that get a batch.
func functions(t *testing.T) (all map[string]queuing, batched map[string]bool) {
	t.Helper()
	all, batched = map[string]queuing{}, map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			if f, is := declared.(*ast.FuncDecl); is {
				start, end := f.Type.Params.Pos(), f.Type.Params.End()
				batched[f.Name.Name] = batched[f.Name.Name] || strings.Contains(string(source[start-1:end-1]), "*pgx.Batch")
				all[f.Name.Name] = body(name, f)
			}
		}
	}
	return all, batched
}

func body(file string, f *ast.FuncDecl) queuing {
	q := queuing{file: file}
	ast.Inspect(f, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Ident:
			q.names = append(q.names, n.Name)
		case *ast.BasicLit:
			q.writes = q.writes || n.Kind == token.STRING && writes.MatchString(n.Value)
		}
		return true
	})
	return q
}

// Each statement with which a commit writes is tried by the probe, too: what the database refuses
// of a commit would end term after term otherwise.
func TestWhatACommitWritesIsProbed(t *testing.T) {
	t.Parallel()
	all, batched := functions(t)
	var reach func(from string, seen map[string]bool)
	reach = func(from string, seen map[string]bool) {
		for _, name := range all[from].names {
			if batched[name] && !seen[name] {
				seen[name] = true
				reach(name, seen)
			}
		}
	}
	committed, probed := map[string]bool{}, map[string]bool{}
	reach("Prepare", committed)
	for name, f := range all {
		if strings.HasPrefix(f.file, "probe") {
			reach(name, probed)
		}
	}
	writing := 0
	for _, name := range slices.Sorted(maps.Keys(committed)) {
		if all[name].writes {
			writing++
			if !probed[name] {
				t.Errorf("a commit writes by %s (%s), and Probe does not try it", name, all[name].file)
			}
		}
	}
	if all["Prepare"].writes {
		t.Error("Prepare writes by itself; have a function do it that Probe can try, too")
	}
	if writing < 10 {
		t.Errorf("a commit writes by %d functions only: %v; the test does not see them any more", writing, slices.Sorted(maps.Keys(committed)))
	}
}
