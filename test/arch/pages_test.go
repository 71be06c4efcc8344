package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// namedTest is the name of a test in a page; TestX stands for any.
	namedTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+\b`)
	// declaredTest is a test in the code.
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]+)\(`)
)

// TestPagesNameTestsThatExist: a page that names the test of a statement names one that is
// there.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	var pages []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin") {
			return filepath.SkipDir
		}
		switch {
		case strings.HasSuffix(path, "_test.go"):
			content, err := os.ReadFile(path)
			for _, found := range declaredTest.FindAllStringSubmatch(string(content), -1) {
				declared[found[1]] = true
			}
			return err
		case filepath.Ext(path) == ".md" && entry.Name() != "CHANGELOG.md":
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, path := range pages {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, missing := range missingTests(string(content), declared) {
			t.Errorf("%s names %s, which is no test", strings.TrimPrefix(path, root+"/"), missing)
		}
		named += len(namedTest.FindAllString(string(content), -1))
	}
	if named < 300 {
		t.Errorf("the pages name %d tests; want at least 300, or this looks at the wrong files", named)
	}
}

// missingTests returns the names of tests in a page that are not declared.
func missingTests(page string, declared map[string]bool) []string {
	var missing []string
	for _, name := range namedTest.FindAllString(page, -1) {
		if name != "TestName" && !declared[name] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// TestMissingTestsBite: a name without a test is found, once.
func TestMissingTestsBite(t *testing.T) {
	t.Parallel()
	got := missingTests("`TestHere`, `TestGone` and TestGone (`FuzzGone`, `TestX`, `-run TestName`)", map[string]bool{"TestHere": true})
	if want := []string{"TestGone", "FuzzGone"}; !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
}
