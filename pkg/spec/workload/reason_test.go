package workload_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

// TestReasonKindsAreAll: a kind that is missing in the list would be refused where
// people may write it.
func TestReasonKindsAreAll(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []workload.ReasonKind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if name, typed := specType(spec, is); typed && name == "ReasonKind" {
			kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, workload.ReasonKind(kind))
		}
		return true
	})
	if len(want) == 0 {
		t.Fatal("no constant of type ReasonKind found")
	}
	got := workload.ReasonKinds()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds of reasons (-constants +list):\n%s", diff)
	}
}

func specType(spec *ast.ValueSpec, is bool) (string, bool) {
	if !is {
		return "", false
	}
	name, is := spec.Type.(*ast.Ident)
	if !is {
		return "", false
	}
	return name.Name, true
}

// TestThePageHasAllReasons holds the table of docs/lifecycle.md against the list.
func TestThePageHasAllReasons(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "lifecycle.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Reasons\n")
	section, _, closed := strings.Cut(section, "\n## ")
	if !found || !closed {
		t.Fatal("the page has no section of reasons")
	}
	var listed []workload.ReasonKind
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, workload.ReasonKind(row[1]))
	}
	want := workload.ReasonKinds()
	slices.Sort(want)
	slices.Sort(listed)
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("reasons (-code +page):\n%s", diff)
	}
}
