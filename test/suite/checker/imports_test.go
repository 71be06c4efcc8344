package checker

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestNoSharedCode holds the checker and the bystander to what they say of
// themselves: they import no package of Muster.
func TestNoSharedCode(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, dir := range []string{".", "../../recorder"} {
		t.Run(dir, func(t *testing.T) {
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range files {
				if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
					continue
				}
				parsed, err := parser.ParseFile(token.NewFileSet(), dir+"/"+entry.Name(), nil, parser.ImportsOnly)
				if err != nil {
					t.Fatal(err)
				}
				looked++
				for _, imported := range parsed.Imports {
					if strings.HasPrefix(imported.Path.Value, `"muster.dev/`) {
						t.Errorf("%s/%s imports %s", dir, entry.Name(), imported.Path.Value)
					}
				}
			}
		})
	}
	if looked < 5 {
		t.Errorf("looked at %d files", looked)
	}
}
