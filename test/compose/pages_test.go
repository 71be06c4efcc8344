package compose

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// older matches a command of docker-compose 1.29 alone.
var older = regexp.MustCompile(`(?m)^\$ .*docker-compose [a-z]`)

// TestPagesServeBothComposes: a page whose commands are those of Compose v2 says how to
// write them for docker-compose 1.29, and none is for the latter only.
func TestPagesServeBothComposes(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, filepath.Join("..", "..", "README.md")) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := string(content)
		if strings.Contains(page, "docker compose ") && !strings.Contains(page, "`docker-compose") {
			t.Errorf("%s has commands of Compose v2, and does not say how to write them for docker-compose 1.29", path)
		}
		if found := older.FindString(page); found != "" {
			t.Errorf("%s: %q is for docker-compose 1.29 alone; write docker compose", path, found)
		}
	}
}
