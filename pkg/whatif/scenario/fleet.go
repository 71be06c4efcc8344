package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// Labels of the nodes of a fleet file, as the dev cluster sets them.
const (
	ZoneLabel = "topology.kubernetes.io/zone"
	RackLabel = "topology.muster.dev/rack"
	// ModelLabel has the product of a node's GPUs, as NVIDIA's discovery names it.
	ModelLabel = "nvidia.com/gpu.product"
)

// fleet is a file of nodes: a fleet file of the dev cluster, or the nodes of a scenario.
type fleet struct {
	Groups []fleetGroup `json:"groups,omitempty"`
	Nodes  []NodeGroup  `json:"nodes,omitempty"`
}

// fleetGroup is a group of a fleet file. Annotations and the capacity beyond what is
// allocatable mean nothing to decisions.
type fleetGroup struct {
	NodeGroup
	Annotations  map[string]string `json:"annotations,omitempty"`
	Capacity     json.RawMessage   `json:"capacity,omitempty"`
	Zones        int               `json:"zones,omitempty"`
	RacksPerZone int               `json:"racksPerZone,omitempty"`
}

// ReadFleet reads the nodes of a file: a fleet file of the dev cluster ("groups"), the
// nodes of a scenario ("nodes"), or the machine list of cluster-trace-gpu-v2023. The error
// is a fault.List.
func ReadFleet(data []byte) ([]capacity.Node, error) {
	if len(data) > largest {
		return nil, fault.List{{Text: fmt.Sprintf("the file has %d bytes; want at most %d", len(data), largest)}}
	}
	if strings.HasPrefix(string(data), machineColumns) {
		return readMachines(string(data))
	}
	node, err := strictyaml.Document(data)
	if err != nil {
		return nil, err
	}
	var f fleet
	if err := strictyaml.Decode(node, "", &f); err != nil {
		return nil, err
	}
	nodes, err := f.all()
	if err != nil {
		return nil, strictyaml.Locate(node, err)
	}
	return nodes, nil
}

func (f *fleet) all() ([]capacity.Node, error) {
	var faults fault.List
	var all []capacity.Node
	known := map[string]bool{}
	add := func(path string, nodes []capacity.Node) {
		for _, n := range nodes {
			if known[n.Name] {
				faults.Add(path+".name", "there are two nodes %q; want another name", n.Name)
				return
			}
			known[n.Name] = true
		}
		if all = append(all, nodes...); len(all) > mostNodes {
			faults.Add(path+".count", "that makes %d nodes; want at most %d", len(all), mostNodes)
		}
	}
	for i := range f.Groups {
		path := fault.Index("groups", i)
		nodes, err := f.Groups[i].all(path)
		faults.Under("", err)
		add(path, nodes)
	}
	for i := range f.Nodes {
		path := fault.Index("nodes", i)
		nodes, err := f.Nodes[i].nodes(path)
		faults.Under("", err)
		add(path, nodes)
	}
	if len(all) == 0 && len(faults) == 0 {
		faults.Add("nodes", "is missing; want groups of nodes, such as [{name: gpu-{00}, count: 4, allocatable: {cpu: 96, nvidia.com/gpu: 8}}]")
	}
	return all, faults.Err()
}

// all returns the nodes of the group in their zones and racks: runs of consecutive nodes.
func (g *fleetGroup) all(path string) ([]capacity.Node, error) {
	if g.Zones < 0 || g.RacksPerZone < 0 || g.RacksPerZone > 0 && g.Zones == 0 {
		return nil, fault.At(path+".zones", "%d with %d racks each: want numbers of zones and racks, or none", g.Zones, g.RacksPerZone)
	}
	nodes, err := g.nodes(path)
	if err != nil || g.Zones == 0 || len(nodes) == 0 {
		return nodes, err
	}
	perZone := ceilDiv(len(nodes), g.Zones)
	for i := range nodes {
		zone := "zone-" + strconv.Itoa(i/perZone)
		labels := map[string]string{ZoneLabel: zone}
		if g.RacksPerZone > 0 {
			labels[RackLabel] = zone + "-rack-" + strconv.Itoa(i%perZone/ceilDiv(perZone, g.RacksPerZone))
		}
		maps.Copy(labels, nodes[i].Labels)
		nodes[i].Labels = labels
	}
	return nodes, nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// machineColumns is the first line of a machine list.
const machineColumns = "sn,cpu_milli,memory_mib,gpu,model"

// readMachines reads a machine list. A node has the model of its GPUs as a label.
func readMachines(text string) ([]capacity.Node, error) {
	var faults fault.List
	var all []capacity.Node
	known := map[string]bool{}
	for i, line := range strings.Split(strings.TrimRight(text, "\r\n"), "\n")[1:] {
		n, err := machine(strings.Split(strings.TrimRight(line, "\r"), ","))
		switch {
		case err != nil:
			faults = append(faults, fault.Fault{Line: i + 2, Text: err.Error()})
		case n.Name == "" || known[n.Name]:
			faults = append(faults, fault.Fault{Line: i + 2, Path: "sn", Text: fmt.Sprintf("%q is missing or a duplicate; want another name", fault.Clip(n.Name))})
		case len(all) == mostNodes:
			return nil, fault.List{{Line: i + 2, Text: fmt.Sprintf("there are more than %d nodes", mostNodes)}}
		default:
			all, known[n.Name] = append(all, n), true
		}
	}
	if len(all) == 0 && len(faults) == 0 {
		faults.Add("", "the list has no machines; want a line for each")
	}
	return all, faults.Err()
}

func machine(words []string) (capacity.Node, error) {
	columns := strings.Split(machineColumns, ",")
	if len(words) != len(columns) {
		return capacity.Node{}, fmt.Errorf("has %d columns, want %d: %s", len(words), len(columns), machineColumns)
	}
	var amounts [3]int64
	for i := range amounts {
		value, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil || value < 0 || value > 1<<40 {
			return capacity.Node{}, fmt.Errorf("column %s: %q: want a whole number that is not negative", columns[i+1], fault.Clip(words[i+1]))
		}
		amounts[i] = value
	}
	allocatable := resource.List{"cpu": amounts[0], "memory": amounts[1] << 20, resource.Pods: podSlots}
	if amounts[2] > 0 {
		allocatable["nvidia.com/gpu"] = amounts[2]
	}
	return capacity.Node{
		Cluster: defaultCluster, Name: words[0], Ready: true, Allocatable: allocatable,
		Labels: map[string]string{capacity.HostnameLabel: words[0], ModelLabel: cmp.Or(words[4], "none")},
	}, nil
}
