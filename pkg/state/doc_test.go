package state

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestThePackageNamesEachCauseOfAnEviction: the table of evictions in doc.go has each kind of
// reason for which a started workload is evicted.
func TestThePackageNamesEachCauseOfAnEviction(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(doc), "// # Evictions\n")
	table, _, ended := strings.Cut(table, "// # Exceptions\n")
	if !found || !ended {
		t.Fatal("doc.go has no table of evictions")
	}
	named := strings.Fields(strings.ReplaceAll(table, ",", " "))
	for kind := range requeueRules {
		if !slices.Contains(named, string(kind)) {
			t.Errorf("the table of evictions in doc.go lacks %s", kind)
		}
	}
}
