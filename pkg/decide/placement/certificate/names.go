package certificate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// labels returns the labels of a node that the workload or its flavors name.
func (r *renaming) labels(of map[string]string) (map[string]string, error) {
	var renamed map[string]string
	for key, value := range of {
		if r.own[key] == nil && r.keys[key] == "" {
			continue
		}
		to, err := r.label(key, value)
		if err != nil {
			return nil, err
		}
		if renamed == nil {
			renamed = map[string]string{}
		}
		renamed[r.key(key)] = to
	}
	return renamed, nil
}

// label returns the replacement of a node's value of a label.
func (r *renaming) label(key, value string) (string, error) {
	want := answers(r.asked[key], "", value)
	if r.domains[key] {
		to := r.value(key, value, "domain")
		if answers(r.askedRenamed[key], "", to) != want {
			return "", fmt.Errorf("it selects nodes by ranges or flavors of %q, which also has its domains", key)
		}
		return to, nil
	}
	candidates := slices.Concat(slices.Sorted(maps.Keys(r.own[key])), slices.Sorted(maps.Values(r.values[key])), aroundBounds(r.asked[key]))
	candidates = append(candidates, unused("other", func(name string) bool { return r.own[key][name] || hasValue(r.values[key], name) }))
	return pick(candidates, key, func(candidate string) bool { return answers(r.askedRenamed[key], "", candidate) == want })
}

// nodeName returns what stands for the name of a node; nothing where no name is asked
// for.
func (r *renaming) nodeName(name string) (string, error) {
	asked := r.fields["metadata.name"]
	if len(asked) == 0 {
		return "", nil
	}
	want := answers(asked, name, "")
	var candidates []string
	own := map[string]bool{}
	for _, requirement := range asked {
		for _, value := range requirement.Values {
			own[value] = true
		}
	}
	candidates = append(slices.Sorted(maps.Keys(own)), aroundBounds(asked)...)
	candidates = append(candidates, unused("node", func(name string) bool { return own[name] }))
	return pick(candidates, "metadata.name", func(candidate string) bool { return answers(asked, candidate, "") == want })
}

func pick(candidates []string, key string, same func(string) bool) (string, error) {
	if at := slices.IndexFunc(candidates, same); at >= 0 {
		return candidates[at], nil
	}
	return "", fmt.Errorf("its constraint on %q cannot be expressed without label values of nodes", key)
}

// aroundBounds returns the numbers next to the bounds of ranges.
func aroundBounds(asked []workload.Requirement) []string {
	var numbers []string
	for _, requirement := range asked {
		if requirement.Operator != "Gt" && requirement.Operator != "Lt" {
			continue
		}
		for _, value := range requirement.Values {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				numbers = append(numbers, strconv.FormatInt(n-1, 10), strconv.FormatInt(n+1, 10))
			}
		}
	}
	return numbers
}

// answers records which of the terms a node with this name, or this value of their label,
// meets.
func answers(asked []workload.Requirement, name, value string) string {
	text := make([]byte, 0, len(asked))
	for _, requirement := range asked {
		node := capacity.Node{Name: name, Labels: map[string]string{requirement.Key: value}}
		term := workload.NodeTerm{Labels: []workload.Requirement{requirement}}
		if name != "" {
			term = workload.NodeTerm{Fields: []workload.Requirement{requirement}}
		}
		if node.Selects(&workload.Template{Affinity: []workload.NodeTerm{term}}) {
			text = append(text, '+')
		} else {
			text = append(text, '-')
		}
	}
	return string(text)
}

// taints returns the taints of a node that matter, as far as tolerations tell them
// apart.
func (r *renaming) taints(of []capacity.Taint) []capacity.Taint {
	var renamed []capacity.Taint
	for _, taint := range of {
		if taint.Effect == "PreferNoSchedule" || taint.Key == cordoned {
			continue
		}
		named, byFlavor := r.taintKeys[taint.Key] != nil, r.taintNames[taint.Key]
		to := capacity.Taint{Effect: taint.Effect, Key: taint.Key, Value: taint.Value}
		switch {
		case byFlavor != "":
			to.Key = byFlavor
		case !named:
			to.Key, to.Value = unused("untolerated", func(name string) bool { return r.taintKeys[name] != nil || hasValue(r.taintNames, name) }), ""
		}
		if given, known := r.values["taint/"+taint.Key][taint.Value]; known {
			to.Value = given
		} else if to.Value != "" && !r.taintKeys[taint.Key][taint.Value] {
			to.Value = unused("other", func(name string) bool { return r.taintKeys[taint.Key][name] })
		}
		renamed = append(renamed, to)
	}
	slices.SortFunc(renamed, func(a, b capacity.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return slices.Compact(renamed)
}
