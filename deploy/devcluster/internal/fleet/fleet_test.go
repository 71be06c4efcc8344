package fleet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestPatterns(t *testing.T) {
	tests := map[string]struct {
		pattern string
		number  int
		want    string
		group   string
		fault   string
	}{
		"digits":        {pattern: "gpu-{000}", number: 7, want: "gpu-007", group: "gpu"},
		"dots":          {pattern: "gpu-{000..}", number: 12, want: "gpu-012", group: "gpu"},
		"overflow":      {pattern: "gpu-{0}", number: 123, want: "gpu-123", group: "gpu"},
		"in the middle": {pattern: "rack-{00}.gpu", number: 3, want: "rack-03.gpu", group: "rack.gpu"},
		"fixed":         {pattern: "head", number: 0, want: "head", group: "head"},
		"empty":         {pattern: "", fault: "must not be empty"},
		"not zeros":     {pattern: "gpu-{1..9}", fault: "zeros in braces"},
		"two numbers":   {pattern: "{0}-{0}", fault: "more than one number"},
		"stray brace":   {pattern: "gpu-{0}}", fault: "braces beside"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := parsePattern(tc.pattern)
			if !matchesFault(err, tc.fault) {
				t.Fatalf("parsePattern(%q): %v, want a fault with %q", tc.pattern, err, tc.fault)
			}
			if err != nil {
				return
			}
			if got := p.name(tc.number); got != tc.want {
				t.Errorf("name(%d) = %q, want %q", tc.number, got, tc.want)
			}
			if got := p.group(); got != tc.group {
				t.Errorf("group() = %q, want %q", got, tc.group)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ file, fault string }{
		"no groups":         {"groups: []", "no groups"},
		"unknown field":     {"groups: [{name: a, alocatable: {cpu: 1}}]", "alocatable"},
		"no resources":      {"groups: [{name: a}]", "allocatable: must name resources"},
		"bad quantity":      {"groups: [{name: a, allocatable: {cpu: much}}]", "quantities must match"},
		"negative quantity": {"groups: [{name: a, allocatable: {cpu: -1}}]", "is negative"},
		"bad resource":      {"groups: [{name: a, allocatable: {'no such/thing/x': 1}}]", `resource "no such/thing/x"`},
		"negative count":    {"groups: [{name: 'a-{0}', count: -1, allocatable: {cpu: 1}}]", "count -1"},
		"count of fixed":    {"groups: [{name: a, count: 2, allocatable: {cpu: 1}}]", "no number in braces"},
		"too many":          {"groups: [{name: 'a-{0}', count: 99999, allocatable: {cpu: 1}}]", "count 99999"},
		"bad name":          {"groups: [{name: 'A-{0}', allocatable: {cpu: 1}}]", "lowercase"},
		"racks alone":       {"groups: [{name: a, racksPerZone: 2, allocatable: {cpu: 1}}]", "needs zones"},
		"bad taint":         {"groups: [{name: a, allocatable: {cpu: 1}, taints: [{key: k, effect: Never}]}]", `effect "Never"`},
		"bad label":         {"groups: [{name: a, allocatable: {cpu: 1}, labels: {k: 'a b'}}]", "labels"},
		"same name":         {"groups: [{name: 'a-{0}', allocatable: {cpu: 1}}, {name: a-0, allocatable: {cpu: 1}}]", `both have a node "a-0"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parse([]byte(tc.file), "test"); !matchesFault(err, tc.fault) || tc.fault == "" {
				t.Errorf("parse: %v, want a fault with %q", err, tc.fault)
			}
		})
	}
}

func TestNodes(t *testing.T) {
	f, err := parse([]byte(`
groups:
- name: tpu-{00}
  count: 12
  labels: {pool: tpu}
  taints: [{key: google.com/tpu, value: present, effect: NoSchedule}]
  zones: 2
  racksPerZone: 3
  allocatable: {cpu: 96, google.com/tpu: 4}
  capacity: {cpu: 100}
`), "test")
	if err != nil {
		t.Fatal(err)
	}
	nodes := f.Nodes()
	if len(nodes) != 12 {
		t.Fatalf("there are %d nodes, want 12", len(nodes))
	}
	for index, want := range map[int]struct{ name, zone, rack string }{
		0:  {"tpu-00", "zone-0", "zone-0-rack-0"},
		5:  {"tpu-05", "zone-0", "zone-0-rack-2"},
		6:  {"tpu-06", "zone-1", "zone-1-rack-0"},
		11: {"tpu-11", "zone-1", "zone-1-rack-2"},
	} {
		t.Run(want.name, func(t *testing.T) {
			n := nodes[index]
			if n.Name != want.name || n.Labels[ZoneLabel] != want.zone || n.Labels[RackLabel] != want.rack {
				t.Errorf("node %d is %s in %s, %s; want %+v", index, n.Name, n.Labels[ZoneLabel], n.Labels[RackLabel], want)
			}
		})
	}
	n := nodes[0]
	if n.Labels["pool"] != "tpu" || len(n.Spec.Taints) != 1 {
		t.Errorf("labels %v and taints %v do not follow the group", n.Labels, n.Spec.Taints)
	}
	for resource, want := range map[corev1.ResourceName][2]string{
		corev1.ResourceCPU: {"96", "100"}, "google.com/tpu": {"4", "4"}, corev1.ResourcePods: {"110", "110"},
	} {
		t.Run(string(resource), func(t *testing.T) {
			allocatable, capacity := n.Status.Allocatable[resource], n.Status.Capacity[resource]
			if allocatable.String() != want[0] || capacity.String() != want[1] {
				t.Errorf("%s: allocatable %s, capacity %s; want %v", resource, &allocatable, &capacity, want)
			}
		})
	}
}

func TestNodesLeaveOutTakenNames(t *testing.T) {
	taken := func(name string) bool { return name == "a-0" || name == "a-2" }
	var names []string
	for _, n := range (Group{Name: "a-{0}", Count: ptr.To(3)}).Nodes(taken) {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "a-1 a-3 a-4" {
		t.Errorf("names are %q, want a-1 a-3 a-4", got)
	}
	if nodes := (Group{Name: "a-0"}).Nodes(taken); len(nodes) != 0 {
		t.Errorf("a fixed name that is taken gave %d nodes, want none", len(nodes))
	}
}

func matchesFault(err error, fault string) bool {
	if fault == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), fault)
}
