package helm_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	promql "github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

var (
	metricName = regexp.MustCompile(`^muster_[a-z_]+$`)
	// suffix is what Prometheus appends to the name of a histogram.
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestMonitoring: alerts and dashboard are valid and speak of metrics that the
// services have.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	known := metrics(t)
	for place, expression := range expressions(t) {
		parsed, err := promql.ParseExpr(expression)
		if err != nil {
			t.Errorf("%s: %v", place, err)
			continue
		}
		promql.Inspect(parsed, func(node promql.Node, _ []promql.Node) error {
			if selector, ok := node.(*promql.VectorSelector); ok && !known[selector.Name] && !known[suffix.ReplaceAllString(selector.Name, "")] {
				t.Errorf("%s: no service has a metric %q", place, selector.Name)
			}
			return nil
		})
	}
}

// TestEveryMetricIsDocumented: the page names all metrics that there are, and no
// others.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(muster_[a-z_]+)").FindAllSubmatch(page, -1) {
		documented[string(row[1])] = true
	}
	known := metrics(t)
	for name := range known {
		if !documented[name] {
			t.Errorf("docs/operations.md does not say what %s is", name)
		}
	}
	for name := range documented {
		if !known[name] {
			t.Errorf("docs/operations.md tells of %s, which no service has", name)
		}
	}
	if len(known) < 15 {
		t.Errorf("only %d metrics were found", len(known))
	}
}

// notMetrics are names in the sources that look like metrics: roles of Postgres.
var notMetrics = map[string]bool{"muster_queue_manager": true, "muster_reader": true}

// TestEveryAlertIsDocumented compares the alerts with their table in docs/operations.md.
func TestEveryAlertIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Alerts\n")
	if !found {
		t.Fatal("docs/operations.md has no section Alerts")
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Muster[A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		documented[name[1]] = true
	}
	for where := range expressions(t) {
		name, alert := strings.CutPrefix(where, "alert ")
		if alert && !documented[name] {
			t.Errorf("docs/operations.md says nothing about alert %s", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/operations.md has a row for %s, which is no alert", name)
	}
}

// expressions returns what the alerts and the dashboard ask, by where.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
				Labels      map[string]string
			}
		}
	}
	read(t, "alerts.yaml", func(content []byte) error { return yaml.Unmarshal(content, &alerts) })
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			found["alert "+rule.Alert] = rule.Expr
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("alert %s does not say what to make of it", rule.Alert)
			}
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read(t, "dashboard.json", func(content []byte) error { return json.Unmarshal(content, &dashboard) })
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			found["panel "+panel.Title+" "+strconv.Itoa(i)] = target.Expr
		}
	}
	if len(alerts.Groups) == 0 || len(dashboard.Panels) == 0 {
		t.Fatal("no alerts or no panels were found")
	}
	return found
}

func read(t *testing.T, name string, decode func([]byte) error) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("muster", "files", name))
	if err == nil {
		err = decode(content)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// metrics returns the names of all metrics in the services' sources: they are
// given as literals, in fields called Name or as the first argument.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, root := range []string{"../../services", "../../pkg"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				literal, ok := node.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && metricName.MatchString(text) && !notMetrics[text] {
					names[text] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
