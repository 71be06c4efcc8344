// Package alerttest finds counters that begin too late for their alerts. Prometheus sees no
// increase in a series that appears with a value. An alert on increase() or rate() therefore
// misses the first event of a counter, unless the counter has its series before it counts.
//
// It is for tests only.
package alerttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"
)

// Counter is a metric of whose increase an alert asks.
type Counter struct {
	Alert, Name string
	// Equal are the labels that the alert wants to be equal to a value.
	Equal map[string]string
}

var (
	// ranged finds the selectors under increase and rate.
	ranged = regexp.MustCompile(`\b(?:increase|rate)\((\w+)(?:\{([^}]*)\})?\[`)
	equal  = regexp.MustCompile(`(\w+)="([^"]*)"`)
	// part is what Prometheus appends to the name of a histogram.
	part  = regexp.MustCompile(`_(bucket|sum|count)$`)
	named = regexp.MustCompile(`fqName: "(\w+)"`)
)

// Counters reads the alerts and returns the counters under increase and rate.
func Counters() ([]Counter, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "deploy", "helm", "muster", "files", "alerts.yaml"))
	if err != nil {
		return nil, err
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(content, &alerts); err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	var counters []Counter
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			found := ranged.FindAllStringSubmatch(rule.Expr, -1)
			if calls := strings.Count(rule.Expr, "increase(") + strings.Count(rule.Expr, "rate("); calls != len(found) {
				return nil, fmt.Errorf("alert %s has %d calls of increase and rate, of which %d have a selector that is understood: %s", rule.Alert, calls, len(found), rule.Expr)
			}
			for _, selector := range found {
				c := Counter{Alert: rule.Alert, Name: part.ReplaceAllString(selector[1], ""), Equal: map[string]string{}}
				for _, label := range equal.FindAllStringSubmatch(selector[2], -1) {
					c.Equal[label[1]] = label[2]
				}
				counters = append(counters, c)
			}
		}
	}
	if len(counters) == 0 {
		return nil, errors.New("no alert asks for the increase of a counter")
	}
	return counters, nil
}

// Missing returns the names, sorted, of the counters of alerts that a registry has without the
// series for which the alert asks, and of those that the package under test makes and the registry
// does not have. Nothing may have been counted in the registry yet.
func Missing(registry *prometheus.Registry) ([]string, error) { return MissingOf(".", registry) }

// MissingOf is Missing for the package in a folder.
func MissingOf(folder string, registry *prometheus.Registry) ([]string, error) {
	counters, err := Counters()
	if err != nil {
		return nil, err
	}
	makes, err := sources(folder)
	if err != nil {
		return nil, err
	}
	registered := described(registry)
	families, err := registry.Gather()
	if err != nil {
		return nil, err
	}
	series := map[string][]map[string]string{} // labels by the name of the metric
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			series[family.GetName()] = append(series[family.GetName()], labels)
		}
	}
	var missing []string
	for _, c := range counters {
		if (registered[c.Name] || strings.Contains(makes, `"`+c.Name+`"`)) && !slices.ContainsFunc(series[c.Name], c.matches) {
			missing = append(missing, c.Name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing), nil
}

// sources is the text of a package in a folder, without its tests.
func sources(folder string) (text string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, failed := os.ReadFile(name)
		text, err = text+string(content), errors.Join(err, failed)
	}
	return text, err
}

func (c Counter) matches(labels map[string]string) bool {
	for name, value := range c.Equal {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// described are the names of the metrics of a registry, also of those without series.
func described(registry *prometheus.Registry) map[string]bool {
	all := make(chan *prometheus.Desc)
	go func() { registry.Describe(all); close(all) }()
	names := map[string]bool{}
	for d := range all {
		if name := named.FindStringSubmatch(d.String()); name != nil {
			names[name[1]] = true
		}
	}
	return names
}

// Root is the folder with go.work above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.work")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no folder above has a go.work")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
