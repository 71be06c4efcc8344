// Package fleet describes the nodes of a dev cluster: a file or a preset has
// groups of like nodes, which Nodes turns into Kubernetes objects.
package fleet

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// A node is played by KWOK as long as it has ManagedLabel with the value
// ManagedRunning. With ManagedStopped its kubelet is dead: its heartbeats stop
// and its pods neither start nor end.
const (
	ManagedLabel   = "devcluster.muster.dev/kubelet"
	ManagedRunning = "running"
	ManagedStopped = "stopped"
)

// Labels of where a node stands.
const (
	GroupLabel = "devcluster.muster.dev/group"
	ZoneLabel  = corev1.LabelTopologyZone
	RackLabel  = "topology.muster.dev/rack"
)

// LeaseDuration is how long the lease of a node is good. It is renewed at a
// quarter of it, and 1,000 nodes must not keep a small machine busy.
const LeaseDuration = 240 * time.Second

// maxNodes keeps a typing error from filling the memory.
const maxNodes = 20_000

// Fleet is the content of a fleet file.
type Fleet struct {
	Groups []Group `json:"groups"`
}

// Group is a number of like nodes.
type Group struct {
	// Name is the pattern of the nodes' names. A run of zeros in braces is the
	// number of the node in the group with at least as many digits: "gpu-{000}"
	// gives gpu-000, gpu-001 and so on. A pattern without braces names a single
	// node, or gets "-{0}" when Count is more than 1.
	Name string `json:"name"`
	// Count is the number of nodes, 1 when left out.
	Count *int `json:"count,omitempty"`

	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []corev1.Taint    `json:"taints,omitempty"`

	// Allocatable is what pods can use, with any extended resource. "pods"
	// defaults to 110.
	Allocatable map[corev1.ResourceName]resource.Quantity `json:"allocatable"`
	// Capacity is what the machine has: Allocatable where it is empty.
	Capacity map[corev1.ResourceName]resource.Quantity `json:"capacity,omitempty"`

	// Zones is the number of zones over which the group is spread evenly, in
	// runs of consecutive nodes. 0 sets no label of a zone.
	Zones int `json:"zones,omitempty"`
	// RacksPerZone is the number of racks in each zone, over which the zone's
	// nodes are spread in the same way. 0 sets no label of a rack.
	RacksPerZone int `json:"racksPerZone,omitempty"`
}

// Load returns the fleet called name: a preset, or a file when name looks like a
// path. openbDir is where the preset "openb" finds its trace.
func Load(name, openbDir string) (Fleet, error) {
	if name == openbPreset {
		return loadOpenB(openbDir)
	}
	if data, ok := preset(name); ok {
		return parse(data, "preset "+name)
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return Fleet{}, fmt.Errorf("fleet %q: no such preset (there are %s) and no such file",
			name, strings.Join(PresetNames(), ", "))
	}
	if err != nil {
		return Fleet{}, fmt.Errorf("reading the fleet file: %w", err)
	}
	return parse(data, name)
}

// parse decodes a fleet file strictly and checks it.
func parse(data []byte, source string) (Fleet, error) {
	var f Fleet
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return Fleet{}, fmt.Errorf("fleet %q: %w", source, err)
	}
	if err := f.Validate(); err != nil {
		return Fleet{}, fmt.Errorf("fleet %q: %w", source, err)
	}
	return f, nil
}

// Validate returns all faults of the fleet.
func (f Fleet) Validate() error {
	if len(f.Groups) == 0 {
		return errors.New("has no groups")
	}
	var faults []error
	total := 0
	for i, g := range f.Groups {
		if err := g.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("groups[%d] (%q): %w", i, g.Name, err))
			continue
		}
		total += g.count()
	}
	if total > maxNodes {
		faults = append(faults, fmt.Errorf("has %d nodes, more than %d", total, maxNodes))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	return f.checkNames()
}

// checkNames refuses two nodes of one name.
func (f Fleet) checkNames() error {
	seen := make(map[string]string)
	for _, g := range f.Groups {
		for _, node := range g.Nodes(nil) {
			if other, ok := seen[node.Name]; ok {
				return fmt.Errorf("groups %q and %q both have a node %q", other, g.Name, node.Name)
			}
			seen[node.Name] = g.Name
		}
	}
	return nil
}

// Validate returns all faults of the group.
func (g Group) Validate() error {
	var faults []error
	fail := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	pattern, err := parsePattern(g.Name)
	if err != nil {
		return err
	}
	if n := g.count(); n < 0 || n > maxNodes {
		fail("count %d: must be 0 to %d", n, maxNodes)
	}
	for _, msg := range validation.IsDNS1123Subdomain(pattern.name(max(g.count()-1, 0))) {
		fail("name: %s", msg)
	}
	if pattern.fixed && g.count() > 1 {
		fail("name %q: has no number in braces, but count is %d", g.Name, g.count())
	}
	if g.Zones < 0 || g.RacksPerZone < 0 {
		fail("zones %d and racksPerZone %d: must not be negative", g.Zones, g.RacksPerZone)
	}
	if g.RacksPerZone > 0 && g.Zones == 0 {
		fail("racksPerZone %d: needs zones", g.RacksPerZone)
	}
	if len(g.Allocatable) == 0 {
		fail("allocatable: must name resources")
	}
	for _, list := range []map[corev1.ResourceName]resource.Quantity{g.Allocatable, g.Capacity} {
		for name, quantity := range list {
			for _, msg := range validation.IsQualifiedName(string(name)) {
				fail("resource %q: %s", name, msg)
			}
			if quantity.Sign() < 0 {
				fail("resource %q: %s is negative", name, quantity.String())
			}
		}
	}
	for _, fault := range metavalidation.ValidateLabels(g.Labels, field.NewPath("labels")) {
		faults = append(faults, fault)
	}
	for i, taint := range g.Taints {
		for _, msg := range validation.IsQualifiedName(taint.Key) {
			fail("taints[%d]: key %q: %s", i, taint.Key, msg)
		}
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			fail("taints[%d]: effect %q: must be NoSchedule, PreferNoSchedule or NoExecute", i, taint.Effect)
		}
	}
	return errors.Join(faults...)
}

func (g Group) count() int {
	if g.Count == nil {
		return 1
	}
	return *g.Count
}

// Nodes returns the fleet's nodes, Ready from the start.
func (f Fleet) Nodes() []*corev1.Node {
	var nodes []*corev1.Node
	for _, g := range f.Groups {
		nodes = append(nodes, g.Nodes(nil)...)
	}
	return nodes
}

// Group returns the group whose pattern, or whose pattern without the number, is
// name.
func (f Fleet) Group(name string) (Group, error) {
	var names []string
	for _, g := range f.Groups {
		pattern, err := parsePattern(g.Name)
		if err != nil {
			return Group{}, err
		}
		if g.Name == name || pattern.group() == name {
			return g, nil
		}
		names = append(names, pattern.group())
	}
	return Group{}, fmt.Errorf("fleet has no group %q (there are %s)", name, strings.Join(names, ", "))
}

// now is the time of the nodes' first heartbeat, whole seconds as in the API.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }
