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

const testName = `(?:Test|Fuzz)[A-Z]\w*`

var (
	named   = regexp.MustCompile(`\b(` + testName + `)(\.\.\.)?`)
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	// A test with the end of its package's path: `e2e.TestX`, or `pkg/state` `TestX`.
	qualified = regexp.MustCompile("`([\\w/-]+)\\.(" + testName + ")`|`([\\w-]+(?:/[\\w-]+)+)` `(" + testName + ")`")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// atLeast is how many tests the pages that rest on tests name, so that they cannot lose
// them unseen.
func atLeast() map[string]int {
	return map[string]int{
		"docs/compatibility.md": 80, "docs/lifecycle.md": 75, "docs/reliability.md": 30, "docs/threats.md": 130, "SECURITY.md": 50,
		"docs/queues.md": 15, "docs/provisioning.md": 15, "test/security/README.md": 15,
	}
}

// Every test that a page names exists, in the package that the page names with it.
func TestTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	tests, pages := definedTests(t), pagesOfTree(t)
	for short := range atLeast() {
		t.Run("there is "+short, func(t *testing.T) {
			if !slices.Contains(pages, short) {
				t.Errorf("there is no page %s", short)
			}
		})
	}
	for _, short := range pages {
		t.Run(short, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(filepath.Join("../..", short))
			if err != nil {
				t.Fatal(err)
			}
			found := named.FindAllStringSubmatch(string(content), -1)
			if want := atLeast()[short]; len(found) < want {
				t.Errorf("the page names %d tests, want at least %d", len(found), want)
			}
			for _, match := range found {
				name, prefix := match[1], match[2] != ""
				if !isExample(name) && !exists(tests, name, prefix) {
					t.Errorf("there is no %s", match[0])
				}
			}
			for _, match := range qualified.FindAllStringSubmatch(string(content), -1) {
				if place, name := match[1]+match[3], match[2]+match[4]; !isExample(name) && !isIn(tests[name], place) {
					t.Errorf("%s is in %v, not in %s", name, tests[name], place)
				}
			}
		})
	}
}

// A test that docs/compatibility.md names without a package is in test/e2e, or in the
// package that the line names before it.
func TestTestsOfCompatibilityExist(t *testing.T) {
	t.Parallel()
	tests := definedTests(t)
	content, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`^` + testName + `$`)
	looked := 0
	for i, line := range strings.Split(string(content), "\n") {
		place := ""
		for _, word := range quoted.FindAllStringSubmatch(line, -1) {
			switch {
			case bare.MatchString(word[1]) && !isExample(word[1]):
				looked++
				if !isIn(tests[word[1]], "test/e2e") && (place == "" || !isIn(tests[word[1]], place)) {
					t.Errorf("line %d: %s is in %v, neither in test/e2e nor in %q", i+1, word[1], tests[word[1]], place)
				}
			case isDir(word[1]):
				place = word[1]
			}
		}
	}
	if looked < 50 {
		t.Errorf("looked at %d tests", looked)
	}
}

// isExample reports whether a page uses the name to explain how tests are named or run.
func isExample(name string) bool { return name == "TestX" || name == "TestName" }

func isDir(path string) bool {
	info, err := os.Stat(filepath.Join("../..", path))
	return err == nil && info.IsDir()
}

// isIn reports whether the path of one of the folders ends with the place.
func isIn(folders []string, place string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasSuffix("/"+folder, "/"+place) })
}

// exists reports whether there is a test of that name, or one that begins so.
func exists(tests map[string][]string, name string, prefix bool) bool {
	if !prefix {
		return len(tests[name]) > 0
	}
	for test := range tests {
		if strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

// definedTests returns the folders of all tests and fuzz targets of the tree, by name.
func definedTests(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	walk(t, "_test.go", func(short string, content []byte) {
		for _, match := range defined.FindAllStringSubmatch(string(content), -1) {
			tests[match[1]] = append(tests[match[1]], filepath.ToSlash(filepath.Dir(short)))
		}
	})
	return tests
}

// pagesOfTree returns the paths of all pages of the tree.
func pagesOfTree(t *testing.T) []string {
	t.Helper()
	var pages []string
	walk(t, ".md", func(short string, _ []byte) { pages = append(pages, short) })
	if len(pages) < 50 {
		t.Fatalf("found %d pages", len(pages))
	}
	return pages
}

// walk reads each file of the tree whose name ends so.
func walk(t *testing.T, end string, read func(short string, content []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, end) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		read(filepath.ToSlash(short), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
