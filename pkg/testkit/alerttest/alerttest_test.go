package alerttest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/testkit/alerttest"
)

// TestMissing: a counter with labels is missing until the series of the alert exists; one
// without labels is there at once, and a counter of no alert does not matter.
func TestMissing(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	terms := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_queue_manager_terms_total"}, []string{"result"})
	registry.MustRegister(terms,
		prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_admissions_total"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_of_no_alert_total"}, []string{"what"}))
	missing := func(want ...string) {
		t.Helper()
		if got, err := alerttest.Missing(registry); err != nil || !slices.Equal(got, want) {
			t.Errorf("missing are %v, %v; want %v", got, err, want)
		}
	}
	missing("muster_queue_manager_terms_total")
	terms.WithLabelValues("begun")
	missing("muster_queue_manager_terms_total")
	terms.WithLabelValues("failed")
	missing()
}

// TestMissingInTheRegistry: a counter of an alert that the package makes, and that its registry does
// not have, is missing. One that a test mentions is not.
func TestMissingInTheRegistry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, counter := range map[string]string{"metrics.go": "muster_queue_manager_terms_total", "metrics_test.go": "muster_admissions_total"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("const name = \""+counter+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := alerttest.MissingOf(folder, prometheus.NewRegistry())
	if want := []string{"muster_queue_manager_terms_total"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("missing are %v, %v; want %v", got, err, want)
	}
}

// TestEachCounterIsChecked: where a counter of an alert is made, a test looks for its series.
func TestEachCounterIsChecked(t *testing.T) {
	t.Parallel()
	counters, err := alerttest.Counters()
	if err != nil {
		t.Fatal(err)
	}
	root, err := alerttest.Root()
	if err != nil {
		t.Fatal(err)
	}
	made, checked := map[string][]string{}, map[string]bool{} // folders by the name of the metric; folders
	for _, top := range []string{"pkg", "services"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			dir := filepath.Dir(path)
			if strings.HasSuffix(path, "_test.go") {
				checked[dir] = checked[dir] || strings.Contains(string(content), "alerttest.Missing(")
				return nil
			}
			for _, c := range counters {
				if strings.Contains(string(content), `"`+c.Name+`"`) {
					made[c.Name] = append(made[c.Name], dir)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range counters {
		if len(made[c.Name]) == 0 {
			t.Errorf("no source makes %s, for which alert %s asks", c.Name, c.Alert)
		}
		for _, dir := range made[c.Name] {
			if !checked[dir] {
				t.Errorf("%s makes %s, and no test there calls alerttest.Missing", strings.TrimPrefix(dir, root), c.Name)
			}
		}
	}
}
