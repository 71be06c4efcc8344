package arch

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTablesHaveSubtests: a case that fails has a name, and can be run alone.
func TestTablesHaveSubtests(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	graph, err := Load(root, false, "work")
	if err != nil {
		t.Fatal(err)
	}
	tests := 0
	for _, pkg := range graph.Ours() {
		files, err := parseNamed(pkg, slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles))
		if err != nil {
			t.Fatal(err)
		}
		tests += len(files)
		for _, breach := range checkTables(pkg.Short(), files) {
			t.Error(breach)
		}
	}
	if tests < 100 {
		t.Errorf("only %d files of tests were read", tests)
	}
}

func TestTablesBite(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "p_test.go", `package p

func TestDirect(t *testing.T) {
	for _, c := range []struct{ want int }{{1}, {2}} {
		if f() != c.want {
			t.Errorf("%d", c.want)
		}
	}
}

func TestVariable(t *testing.T) {
	cases := map[string]struct{ want int }{"a": {1}}
	for name, c := range cases {
		t.Fatal(name, c)
	}
}

func TestDeclared(t *testing.T) {
	var cases = []struct{ want int }{{1}}
	for range cases {
		t.Error()
	}
}

func TestGood(t *testing.T) {
	for name, c := range map[string]struct{ want int }{"a": {1}} {
		t.Run(name, func(t *testing.T) { t.Fatal(c) })
	}
	for _, step := range []struct{ want int }{{1}, {2}} {
		t.Error(step)
	}
	for _, c := range []struct{ want int }{{1}, {2}} {
		t.Skip(c)
		t.Error(c)
	}
	for _, c := range []struct{ want int }{{1}, {2}} {
		use(c)
	}
	for _, c := range []int{1, 2} {
		t.Error(c)
	}
}

func helper(t *testing.T) {
	for _, c := range []struct{ want int }{{1}, {2}} {
		t.Error(c)
	}
}
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	const rest = " has a table without subtests: call t.Run, or name the variable step where each case needs those before it"
	want := []string{"pkg/p/p_test.go:4: TestDirect" + rest, "pkg/p/p_test.go:13: TestVariable" + rest, "pkg/p/p_test.go:20: TestDeclared" + rest}
	if diff := cmp.Diff(want, checkTables("pkg/p", []file{{"p_test.go", set, syntax}})); diff != "" {
		t.Errorf("tables found (-want +got):\n%s", diff)
	}
}
