package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// described are the folders of which CONTRIBUTING.md names each one below.
func described() []string { return []string{"pkg", "services", "deploy", "test"} }

// layoutLine is a line of the layout: folders below the last top folder, and what
// they are for.
var layoutLine = regexp.MustCompile(`^  ([a-z0-9-]+(?:, [a-z0-9-]+)*)(?:  +\S.*)?$`)

// TestLayoutNamesEveryFolder holds the layout in CONTRIBUTING.md against the tree.
func TestLayoutNamesEveryFolder(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "## Layout\n\n```\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("CONTRIBUTING.md has no layout")
	}
	named := map[string][]string{}
	top := ""
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if folder, _, is := strings.Cut(line, "/ "); is && !strings.HasPrefix(line, " ") {
			top = folder
		} else if parts := layoutLine.FindStringSubmatch(line); parts != nil && slices.Contains(described(), top) {
			named[top] = append(named[top], strings.Split(parts[1], ", ")...)
		}
	}
	for _, folder := range described() {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		var there []string
		for _, e := range entries {
			if e.IsDir() {
				there = append(there, e.Name())
			}
		}
		slices.Sort(named[folder])
		if diff := cmp.Diff(there, named[folder]); diff != "" {
			t.Errorf("folders of %s (-tree +CONTRIBUTING.md):\n%s", folder, diff)
		}
	}
}
