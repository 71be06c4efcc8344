package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheLifeOfASubmissionNamesCode: each step of docs/architecture.md names code, and
// all that the page names exists.
func TestTheLifeOfASubmissionNamesCode(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	missing, err := missingNames(root, string(page))
	if err != nil {
		t.Fatal(err)
	}
	files, err := missingFiles(root, string(page))
	if err != nil {
		t.Fatal(err)
	}
	functions, err := missingFunctions(root, string(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(missing, files, functions) {
		t.Errorf("docs/architecture.md names %s, which does not exist", name)
	}
	_, section, found := strings.Cut(string(page), "## The life of a submission through the code\n")
	if !found {
		t.Fatal("docs/architecture.md does not tell the life of a submission")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	steps := 0
	for line := range strings.Lines(section) {
		if !numbered.MatchString(line) {
			continue
		}
		steps++
		if len(namesIn(line)) == 0 {
			t.Errorf("this step names no code: %s", line)
		}
		if !strings.Contains(line, "Crash: ") {
			t.Errorf("this step does not say what a crash does: %s", line)
		}
	}
	if steps < 10 {
		t.Errorf("the section has %d numbered steps: are they still numbered?", steps)
	}
}

// TestMissingNames: names that are wrong in any part are found, others are not.
func TestMissingNames(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	const page = "`test/arch.Load`, `test/arch.Package.Short`, `test/arch.Graph.Chain`, `test/arch.Graph` and `test/arch/graph.go` are there; " +
		"`test/arch.Lode`, `test/arch.Package.Long`, `test/arch.Packages.Short`, `test/arch.Short` and `test/nowhere.Load` are not. " +
		"test/arch.Unquoted is no name of code."
	got, err := missingNames(root, page)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"test/arch.Lode", "test/arch.Package.Long", "test/arch.Packages.Short", "test/arch.Short", "test/nowhere.Load"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing names (-want +got):\n%s", diff)
	}
}

// TestMissingFiles: a file that does not exist is found, and a name of code is no file.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	got, err := missingFiles(root, "`test/arch/graph.go`, `test/arch.Load`, `test/arch/nothing.go` and test/arch/unquoted.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"test/arch/nothing.go"}, got); diff != "" {
		t.Errorf("missing files (-want +got):\n%s", diff)
	}
}

// TestMissingFunctions: of the functions and methods of a row, those that its file lacks
// are found.
func TestMissingFunctions(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	got, err := missingFunctions(root, "| 1 | graph | `test/arch/graph.go` | `Load`, `Chain`, `Unload` | loads |\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"test/arch/graph.go Unload"}, got); diff != "" {
		t.Errorf("missing functions (-want +got):\n%s", diff)
	}
}
