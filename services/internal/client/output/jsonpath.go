package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// jsonPathPrefix begins a format with an expression, such as jsonpath={.workloads[*].name}.
const jsonPathPrefix = "jsonpath="

// parsePath reads the expression of a format. As with kubectl, the outer braces and the
// first dot may be left out.
func parsePath(expression string) (*jsonpath.JSONPath, error) {
	if strings.TrimSpace(expression) == "" {
		return nil, errors.New("jsonpath: the expression is empty; want one such as jsonpath={.workloads[*].name}")
	}
	if !strings.Contains(expression, "{") {
		if !strings.HasPrefix(expression, ".") && !strings.HasPrefix(expression, "[") && !strings.HasPrefix(expression, "$") {
			expression = "." + expression
		}
		expression = "{" + expression + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", expression, err)
	}
	return path, nil
}

// printPath writes what an expression finds in the JSON of a value, with an end of line.
func printPath(w io.Writer, expression string, value any) error {
	path, err := parsePath(expression)
	if err != nil {
		return err
	}
	encoded, err := encode(value)
	if err != nil {
		return err
	}
	var plain any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber() // a float would round an epoch
	if err := decoder.Decode(&plain); err != nil {
		return fmt.Errorf("read the printed JSON: %w", err)
	}
	var found bytes.Buffer
	if err := path.Execute(&found, plain); err != nil {
		return fmt.Errorf("jsonpath %q: %w; -o json shows the fields", expression, err)
	}
	if found.Len() == 0 {
		if err := noItems(expression, plain); err != nil {
			return err
		}
	}
	if found.Len() > 0 && !bytes.HasSuffix(found.Bytes(), []byte("\n")) {
		found.WriteByte('\n')
	}
	_, err = w.Write(found.Bytes())
	return err
}

// items is the list of kubectl's answers in an expression.
var items = regexp.MustCompile(`(^|[{\s$])\.?items\b`)

// noItems is the error of an expression that found nothing because it asks for items, as of
// kubectl's lists: Muster's are named after what is in them.
func noItems(expression string, value any) error {
	fields, isObject := value.(map[string]any)
	if _, has := fields["items"]; !isObject || has || !items.MatchString(expression) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, isList := fields[name].([]any); isList {
			return fmt.Errorf("jsonpath %q: this answer has no items; its list is %s: want %s", expression, name,
				items.ReplaceAllString(expression, "${1}."+name))
		}
	}
	return fmt.Errorf("jsonpath %q: this answer is no list and has no items; -o json shows the fields", expression)
}

// ErrNoNames means that the format is wrong for an answer.
var ErrNoNames = errors.New("-o name: this command shows no objects with names; want text, wide, json, yaml or jsonpath=EXPRESSION")

// printNames writes KIND/NAME of each object of a value, in lines.
func printNames(w io.Writer, value any) error {
	names, ok := namesOf(value)
	if !ok {
		return ErrNoNames
	}
	for _, name := range names {
		if _, err := fmt.Fprintln(w, Cell(name)); err != nil {
			return err
		}
	}
	return nil
}

// namesOf returns KIND/NAME of each object of an answer, and whether it is one with names.
func namesOf(value any) (names []string, ok bool) {
	if kind, name, ok := nameOf(value); ok {
		return []string{objectName(kind, name)}, true
	}
	return listedNames(value)
}

// nameOf returns the kind and the name of an answer that is one object.
func nameOf(value any) (kind, name string, ok bool) {
	switch v := value.(type) {
	case workload.Record:
		return v.Kind, v.Name, true
	case Workload:
		return v.Kind, v.Name, true
	case query.Queue:
		return "queue", v.Name, true
	case Queue:
		return "queue", v.Name, true
	case query.Node:
		return "node", v.Name, true
	case Node:
		return "node", v.Name, true
	}
	return "", "", false
}

// listedNames returns KIND/NAME of each object of an answer that is a list.
func listedNames(value any) (names []string, ok bool) {
	switch v := value.(type) {
	case query.WorkloadsAnswer:
		return namesIn(v.Workloads, func(w *workload.Record) (kind, name string) { return w.Kind, w.Name }), true
	case query.QueuesAnswer:
		return namesIn(v.Queues, func(q *query.Queue) (kind, name string) { return "queue", q.Name }), true
	case query.NodesAnswer:
		return namesIn(v.Nodes, func(n *query.Node) (kind, name string) { return "node", n.Name }), true
	case []query.ClusterQueue:
		return namesIn(v, func(c *query.ClusterQueue) (kind, name string) { return "clusterqueue", c.Name }), true
	case []quota.CohortUsage:
		return namesIn(v, func(c *quota.CohortUsage) (kind, name string) { return "cohort", c.Name }), true
	case []quota.Flavor:
		return namesIn(v, func(f *quota.Flavor) (kind, name string) { return "resourceflavor", f.Name }), true
	case []quota.PriorityClass:
		return namesIn(v, func(c *quota.PriorityClass) (kind, name string) { return "workloadpriorityclass", c.Name }), true
	case []query.ClusterStatus:
		return namesIn(v, func(c *query.ClusterStatus) (kind, name string) { return "cluster", c.Name }), true
	case []quota.Reservation:
		return namesIn(v, func(r *quota.Reservation) (kind, name string) { return "reservation", r.Name }), true
	case query.AppliedAnswer:
		return namesIn(v.Objects, func(o *query.Applied) (kind, name string) { return o.Kind, o.Name }), true
	case query.ConfigureAnswer:
		return namesIn(v.Objects, func(o *query.Configured) (kind, name string) { return o.Kind, o.Name }), true
	}
	return nil, false
}

// namesIn returns KIND/NAME of each object of a list.
func namesIn[T any](objects []T, of func(*T) (kind, name string)) []string {
	var names []string
	for i := range objects {
		names = append(names, objectName(of(&objects[i])))
	}
	return names
}

// objectName is KIND/NAME, as kubectl prints it.
func objectName(kind, name string) string { return strings.ToLower(kind) + "/" + name }
