package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCount counts a small tree of which each figure is known.
func TestCount(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.work":             "go 1.26.0\n\nuse ./p\n",
		"p/go.mod":            "module muster.dev/muster/p\n\ngo 1.26.0\n",
		"p/testdata/q/go.mod": "module q\n",
		"p/a.go":              "// Package p is for a test.\npackage p\n\ntype State struct{}\n\nfunc (s *State) First() { s.second() }\n\nfunc Roster() { use(1) }\n",
		"p/b.go":              "package p\n\nfunc (s *State) second() { s.third() }\n\nfunc use(int) { Roster() }\n\ntype Wide interface { A(); B(); C(); D() }\n",
		"p/c.go":              "package p\n\nfunc (s *State) third() {}\n\nconst Exported, inside = 1, 2\n\ntype hidden int\n\nfunc (hidden) String() string { return \"\" }\n",
		"p/a_test.go":         "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"p/main/main.go":      "// Command main is for a test.\npackage main\n\nfunc Exported() {}\n\nfunc main() {}\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Count(root, []string{"p", "none"})
	if err != nil {
		t.Fatal(err)
	}
	want := Counts{
		Modules: 1, Packages: 2, Lines: 8 + 7 + 9 + 6, TestLines: 5,
		Exported: 5, // two types, a function, a method and a constant
		Wide:     1, Retired: 1,
		Methods: map[string]int{"p.State": 3, "p.hidden": 1},
		Files:   map[string]Arrows{"p": {All: 3, Circular: 2}}, // a and b call each other, b calls c
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	table := got.String()
	for _, row := range []string{"| packages | 2 |", "| calls between files of p | 3, 2 on a circle |", "| methods of p.State | 3 |"} {
		if !strings.Contains(table, row+"\n") {
			t.Errorf("the table lacks %q:\n%s", row, table)
		}
	}
}
