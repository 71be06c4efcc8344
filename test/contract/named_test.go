package contract

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
	named   = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w*)(\.\.\.)?`)
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// Every test that a page names as proof exists. A page that is held up by tests
// names at least as many as the table says, so that it cannot lose them unseen.
func TestTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	atLeast := map[string]int{"docs/compatibility.md": 30, "docs/threats.md": 30, "docs/reliability.md": 5, "SECURITY.md": 5}
	tests := definedTests(t)
	pages := append(glob(t, "../../*.md"), glob(t, "../../docs/*.md")...)
	for short := range atLeast {
		t.Run(short, func(t *testing.T) {
			if !slices.Contains(pages, filepath.Join("../..", short)) {
				t.Errorf("there is no page %s", short)
			}
		})
	}
	for _, page := range pages {
		short := strings.TrimPrefix(filepath.ToSlash(page), "../../")
		t.Run(short, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			found := named.FindAllStringSubmatch(string(content), -1)
			if want := atLeast[short]; len(found) < want {
				t.Errorf("the page names %d tests, want at least %d", len(found), want)
			}
			for _, match := range found {
				name, prefix := match[1], match[2] != ""
				if name != "TestX" && name != "TestName" && !exists(tests, name, prefix) {
					t.Errorf("there is no %s", match[0])
				}
			}
		})
	}
}

// exists reports whether there is a test of that name, or one that begins so.
func exists(tests map[string]bool, name string, prefix bool) bool {
	if !prefix {
		return tests[name]
	}
	for test := range tests {
		if strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

// definedTests returns the names of all tests and fuzz targets of the tree.
func definedTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range defined.FindAllStringSubmatch(string(content), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	pages, err := filepath.Glob(pattern)
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %s: %d, %v", pattern, len(pages), err)
	}
	return pages
}
