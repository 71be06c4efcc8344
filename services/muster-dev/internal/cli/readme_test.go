package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/services/muster-dev/internal/cli"
)

// tableRow is a row of the README's table of commands.
var tableRow = regexp.MustCompile("(?m)^\\| `muster-dev ([a-z]+)")

// The README's table has every command, and no other.
func TestTheReadmeListsTheCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed, there []string
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	root := cli.Command()
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
