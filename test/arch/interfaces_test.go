package arch

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInterfacesAreSmall holds the interfaces of the workspace, and the list of those that
// may be larger, against each other.
func TestInterfacesAreSmall(t *testing.T) {
	t.Parallel()
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, graph)
	for folder, parsed := range files {
		for _, breach := range checkInterfaces(folder, parsed, wideInterfaces()) {
			t.Error(breach)
		}
	}
	for wide := range wideInterfaces() {
		folder, name, _ := strings.Cut(wide, ".")
		if methods := methodsDeclared(files[folder])[name]; methods <= mostMethods {
			t.Errorf("%s declares %d methods, and needs no reason for more than %d", wide, methods, mostMethods)
		}
	}
}

// TestInterfacesBite: methods count where they are declared, and a reason permits more.
func TestInterfacesBite(t *testing.T) {
	t.Parallel()
	const source = `package p

type small interface{ A(); B(); C() }

type composed interface { small; D() }

type large interface { A(); B(); C(); D() }

type permitted interface { A(); B(); C(); D() }

type number interface { ~int | ~int64 }

func f() { type within interface { A(); B(); C(); D() } }
`
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	parsed := []file{{"p.go", set, syntax}}
	want := map[string]int{"small": 3, "composed": 1, "large": 4, "permitted": 4, "number": 0, "within": 4}
	if diff := cmp.Diff(want, methodsDeclared(parsed)); diff != "" {
		t.Errorf("methods declared (-want +got):\n%s", diff)
	}
	breaches := checkInterfaces("p", parsed, map[string]string{"p.permitted": "of the test"})
	if len(breaches) != 2 || !strings.Contains(strings.Join(breaches, "\n"), "p: interface large declares 4 methods") ||
		!strings.Contains(strings.Join(breaches, "\n"), "p: interface within declares 4 methods") {
		t.Errorf("breaches are %q, want one of large and one of within", breaches)
	}
}
