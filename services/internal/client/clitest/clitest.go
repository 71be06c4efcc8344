// Package clitest is what the tests of the two command lines share. It is not for programs.
package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// ReadmeListsCommands checks that the table in the program's README has every command of the
// program, and no other. The test is in the package internal/cli of the program.
func ReadmeListsCommands(t *testing.T, root *cobra.Command) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed, there []string
	row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(root.Name()) + " ([a-z]+)")
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, found[1])
	}
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if !command.Hidden {
			there = append(there, command.Name())
		}
	}
	slices.Sort(listed)
	slices.Sort(there)
	if diff := cmp.Diff(there, listed); diff != "" {
		t.Errorf("commands (-there +README.md):\n%s", diff)
	}
}
