package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// insideRow is a row of the section "Inside" of docs/terminology.md: words, packages.
var insideRow = regexp.MustCompile("^\\| \\*\\*([^*]+)\\*\\* \\| (`[^|]+`) \\| ")

// TestInsideWordsAreInTheCode: each word that docs/terminology.md explains as one of the
// code is in the package that it names, as a name or in a comment.
func TestInsideWordsAreInTheCode(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "terminology.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Inside\n")
	rows := 0
	for line := range strings.Lines(section) {
		row := insideRow.FindStringSubmatch(line)
		if row == nil {
			if strings.HasPrefix(line, "| **") {
				t.Errorf("this row names no package: %s", line)
			}
			continue
		}
		rows++
		for folder := range strings.SplitSeq(row[2], ", ") {
			source := sourceOf(t, root, strings.Trim(folder, "`"))
			for word := range strings.SplitSeq(row[1], ", ") {
				word = strings.ToLower(word)
				if !slices.ContainsFunc(source, func(text string) bool {
					return strings.Contains(text, word) || strings.Contains(text, strings.NewReplacer(" ", "", "-", "").Replace(word))
				}) {
					t.Errorf("%s does not have the word %q", folder, word)
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("the section has %d rows: is it still a table?", rows)
	}
}

// sourceOf returns the files of a package in lower case: of a folder, or of the internal
// package of a service.
func sourceOf(t *testing.T, root, name string) (texts []string) {
	t.Helper()
	for _, pattern := range []string{name, "services/*/internal/" + name} {
		files, err := filepath.Glob(filepath.Join(root, pattern, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, strings.ToLower(string(text)))
		}
	}
	if texts == nil {
		t.Errorf("there is no package %s", name)
	}
	return texts
}
