package scenarios_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// difference is a row of the table of differences from Kueue: what Muster does, the
// reason, and the case.
var difference = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| \[([^\]]+)\]\(\.\./test/scenarios/([^)]+)\) \|$`)

// TestEachDifferenceFromKueueHasAReasonAndACase: each difference on purpose of
// docs/queues.md has a reason and a scenario that comes out so, and each scenario of a
// difference is on the page.
func TestEachDifferenceFromKueueHasAReasonAndACase(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "queues.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Differences from Kueue\n")
	section, _, closed := strings.Cut(section, "\n## ")
	if !found || !closed {
		t.Fatal("the page has no differences")
	}
	rows := difference.FindAllStringSubmatch(section, -1)
	lines := strings.Count(section, "\n| ") - 1 // without the header
	if len(rows) == 0 || len(rows) != lines {
		t.Fatalf("%d of %d rows have what Muster does, a reason and a case", len(rows), lines)
	}
	var listed []string
	for _, row := range rows {
		t.Run(row[3], func(t *testing.T) {
			content, err := os.ReadFile(row[4])
			if err != nil {
				t.Fatalf("%s: %v", row[1], err)
			}
			play(t, content)
		})
		listed = append(listed, row[4])
	}
	files, err := filepath.Glob("differs-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(listed, file) {
			t.Errorf("%s is not on the page", file)
		}
	}
}

// cases is how many cases of Kueue the page says are decided alike.
var cases = regexp.MustCompile("play (\\d+) cases of Kueue .*`kueue-\\*\\.yaml`")

// TestCasesOfKueueAreCounted: the cases of Kueue come out as Kueue decides them, and
// the page has their number.
func TestCasesOfKueueAreCounted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "queues.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("kueue-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	stated := cases.FindStringSubmatch(string(page))
	if stated == nil || stated[1] != strconv.Itoa(len(files)) {
		t.Errorf("there are %d cases, and the page says %q", len(files), stated)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), "Kueue") {
				t.Error("does not say where in Kueue it is from")
			}
			play(t, content)
		})
	}
}
