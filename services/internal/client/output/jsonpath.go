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

// ErrNoNames says that the format is wrong for an answer.
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

func namesOf(value any) (names []string, ok bool) {
	add := func(kind, name string) { names = append(names, strings.ToLower(kind)+"/"+name) }
	switch v := value.(type) {
	case query.WorkloadsAnswer:
		for i := range v.Workloads {
			add(v.Workloads[i].Kind, v.Workloads[i].Name)
		}
	case workload.Record:
		add(v.Kind, v.Name)
	case Workload:
		add(v.Kind, v.Name)
	case query.QueuesAnswer:
		for _, q := range v.Queues {
			add("queue", q.Name)
		}
	case query.Queue:
		add("queue", v.Name)
	case Queue:
		add("queue", v.Name)
	case query.NodesAnswer:
		for _, n := range v.Nodes {
			add("node", n.Name)
		}
	case query.Node:
		add("node", v.Name)
	case Node:
		add("node", v.Name)
	case []query.ClusterQueue:
		for _, c := range v {
			add("clusterqueue", c.Name)
		}
	case []quota.CohortUsage:
		for _, c := range v {
			add("cohort", c.Name)
		}
	case []quota.Flavor:
		for _, f := range v {
			add("resourceflavor", f.Name)
		}
	case []quota.PriorityClass:
		for _, c := range v {
			add("workloadpriorityclass", c.Name)
		}
	case []query.ClusterStatus:
		for _, c := range v {
			add("cluster", c.Name)
		}
	case []quota.Reservation:
		for _, r := range v {
			add("reservation", r.Name)
		}
	case query.AppliedAnswer:
		for _, o := range v.Objects {
			add(o.Kind, o.Name)
		}
	case query.ConfigureAnswer:
		for _, o := range v.Objects {
			add(o.Kind, o.Name)
		}
	default:
		return nil, false
	}
	return names, true
}
