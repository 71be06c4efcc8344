package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/testkit/alerttest"
)

// TestCountersOfAlerts: the counters of alerts have their series before they count. The names
// of queues and clusters are not known then. MusterQueueStalls counts a new series as an admission,
// and MusterEvictionsMany and MusterClusterEvicts fire after 20 evictions.
func TestCountersOfAlerts(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	NewMetrics(registry)
	unbounded := []string{"muster_cluster_admissions_total", "muster_cluster_evictions_total", "muster_evictions_total", "muster_queue_admissions_total"}
	if missing, err := alerttest.Missing(registry); err != nil || !slices.Equal(missing, unbounded) {
		t.Errorf("without series: %v, %v; want %v", missing, err, unbounded)
	}
}

// TestKindsOfNotStorable: the counter begins with all kinds that the sources count, and the
// page has the same ones.
func TestKindsOfNotStorable(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	NewMetrics(registry)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var begun []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "muster_not_storable_total" {
				begun = append(begun, metric.GetLabel()[0].GetValue())
			}
		}
	}
	slices.Sort(begun)
	counted := regexp.MustCompile(`(?:notStorable\.WithLabelValues\(|\.refuse\()"([a-z ]+)"`)
	variable := regexp.MustCompile(`\bwhat :?= "([a-z ]+)"`)
	var inSources []string
	for _, pattern := range []string{"*.go", filepath.Join("..", "relay", "*.go")} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("the sources %s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content := read(t, file)
			found := counted.FindAllSubmatch(content, -1)
			if bytes.Contains(content, []byte("notStorable.WithLabelValues(what)")) {
				found = append(found, variable.FindAllSubmatch(content, -1)...)
			}
			for _, kind := range found {
				inSources = append(inSources, string(kind[1]))
			}
		}
	}
	slices.Sort(inSources)
	if inSources = slices.Compact(inSources); !slices.Equal(begun, inSources) {
		t.Errorf("the counter begins with %q; the sources count %q", begun, inSources)
	}
	row := regexp.MustCompile("(?m)^\\| `muster_not_storable_total\\{what\\}` .*: (.*) \\|$").
		FindSubmatch(read(t, filepath.Join("..", "..", "..", "..", "docs", "operations.md")))
	if row == nil {
		t.Fatal("docs/operations.md has no row of the counter")
	}
	documented := strings.Split(string(row[1]), ", ")
	slices.Sort(documented)
	if !slices.Equal(begun, documented) {
		t.Errorf("the counter begins with %q; docs/operations.md has %q", begun, documented)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
