package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoCallLeadsBack: where an order of files is promised, the calls between them have one.
func TestNoCallLeadsBack(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	imports, err := compiled(root, ordered()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range ordered() {
		t.Run(path, func(t *testing.T) {
			pkg := graph[prefix+path]
			if pkg == nil {
				t.Fatal("there is no such package")
			}
			calls, err := callsBetween(pkg, imports)
			if err != nil {
				t.Fatal(err)
			}
			if len(calls) == 0 {
				t.Error("no call between files was found")
			}
			for _, c := range circle(calls) {
				t.Errorf("a circle of calls, move a function so that there is none: %s", c)
			}
			files, err := parseNamed(pkg, []string{"doc.go"})
			if err != nil {
				return // the package comment is elsewhere, and lists no files
			}
			if groups := fileGroups(files[0].syntax.Doc.Text()); groups != nil {
				for _, breach := range checkFileGroups(groups, pkg.GoFiles, calls) {
					t.Error(breach)
				}
			}
		})
	}
}

func TestCirclesBite(t *testing.T) {
	t.Parallel()
	sources := map[string]string{
		"high.go":   "package p\n\nfunc high() { (&middle{}).go1(); _ = low }\n",
		"middle.go": "package p\n\ntype middle struct{ next interface{ high() } }\n\nfunc (m *middle) go1() { low(); m.next.high() }\n",
		"low.go":    "package p\n\nfunc low() { own() }\n\nfunc own() {}\n",
	}
	for name, c := range map[string]struct{ low, want string }{
		"in order":           {low: sources["low.go"]},
		"through two files":  {low: "package p\n\nfunc low() { high() }\n", want: "low.go calls high.go: high in low"},
		"a method":           {low: "package p\n\nfunc low() { new(middle).go1() }\n", want: "low.go calls middle.go: go1 in low"},
		"a function's value": {low: "package p\n\nfunc low() {}\n\nvar later = high\n", want: "low.go calls high.go: high in a variable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := &Package{ImportPath: "p", Dir: t.TempDir(), GoFiles: []string{"high.go", "low.go", "middle.go"}}
			for file, source := range sources {
				if file == "low.go" {
					source = c.low
				}
				if err := os.WriteFile(filepath.Join(pkg.Dir, file), []byte(source), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			calls, err := callsBetween(pkg, nil)
			if err != nil {
				t.Fatal(err)
			}
			found := circle(calls)
			if c.want == "" && found != nil {
				t.Errorf("found the circle %v in files that are in order", found)
			}
			if c.want != "" && !slices.ContainsFunc(found, func(f call) bool { return f.String() == c.want }) {
				t.Errorf("found the circle %v, want one with %q", found, c.want)
			}
		})
	}
}

func TestFileGroupsBite(t *testing.T) {
	t.Parallel()
	groups := fileGroups("Package p is.\n\n# Files\n\nText.\n\n\tfirst   a, b,\n\t        c\n\tsecond  d\n\n# Other\n\n\tthird  e\n")
	calls := []call{{"a.go", "d.go", "f", "g"}, {"d.go", "c.go", "g", "h"}}
	got := strings.Join(checkFileGroups(groups, []string{"a.go", "b.go", "c.go", "doc.go", "e.go"}, calls), "\n")
	want := `d.go calls c.go: h in g, and doc.go has c.go in an earlier group
the list of files in doc.go has d.go, which does not exist
the list of files in doc.go lacks e.go`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
