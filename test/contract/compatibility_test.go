package contract

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	named   = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w*)`)
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// Every test that docs/compatibility.md names as showing something exists.
func TestTestsOfTheCompatibilityPageExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range defined.FindAllStringSubmatch(string(content), -1) {
			exists[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := named.FindAllStringSubmatch(string(page), -1)
	if len(found) < 30 {
		t.Errorf("only %d tests are named", len(found))
	}
	for _, match := range found {
		if !exists[match[1]] && match[1] != "TestX" {
			t.Errorf("there is no %s", match[1])
		}
	}
}
