package kept_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/test/suite/kept"
)

// Lanes that add to a file at the same time lose nothing of each other.
func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	const lanes = 20
	file := filepath.Join(t.TempDir(), "outcomes.json")
	var adding sync.WaitGroup
	for lane := range lanes {
		adding.Go(func() {
			if err := kept.Change(file, func(rows []int) []int { return append(rows, lane) }, kept.Page{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	rows, err := kept.Read[int](file)
	if err != nil || len(rows) != lanes {
		t.Errorf("%d rows, %v, want %d", len(rows), err, lanes)
	}
}

func TestATableOfAPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	text := strings.Join([]string{"before", "<!-- one: begin -->", "old", "<!-- one: end -->", "after", "<!-- two: begin -->", "kept", "<!-- two: end -->", ""}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(table string) error {
		return kept.Change(filepath.Join(filepath.Dir(file), "outcomes.json"), func([]string) []string { return []string{"new"} },
			kept.Page{File: file, Table: table}, func(rows []string) string { return rows[0] + "\n" })
	}
	if err := put("one"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if diff := cmp.Diff(strings.Replace(text, "old", "new", 1), string(got)); err != nil || diff != "" {
		t.Errorf("%v; the page (-want +got):\n%s", err, diff)
	}
	for name, want := range map[string]string{"one": "new\n", "two": "kept\n"} {
		if table, err := kept.Table(kept.Page{File: file, Table: name}); err != nil || table != want {
			t.Errorf("table %s is %q, %v, want %q", name, table, err, want)
		}
	}
	if err := put("three"); err == nil {
		t.Error("a table without marks was put into the page")
	}
}

func TestMedianAndLongest(t *testing.T) {
	t.Parallel()
	for want, took := range map[string][]time.Duration{
		"-":            nil,
		"2.0 s, 9.0 s": {9 * time.Second, time.Second, 2 * time.Second},
	} {
		if got := kept.MedianAndLongest(took); got != want {
			t.Errorf("%v is %q, want %q", took, got, want)
		}
	}
}
