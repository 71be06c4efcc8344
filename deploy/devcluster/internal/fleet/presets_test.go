package fleet

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPresets(t *testing.T) {
	counts := map[string]int{"autoscaled": 1, "laptop": 2, "p3": 4, "fleet-1000": 1000}
	for _, name := range PresetNames() {
		if Describe(name) == "" {
			t.Errorf("preset %s has no description", name)
		}
		if name == openbPreset {
			continue
		}
		f, err := Load(name, "")
		if err != nil {
			t.Errorf("Load(%q): %v", name, err)
			continue
		}
		if got := len(f.Nodes()); got != counts[name] {
			t.Errorf("preset %s has %d nodes, want %d", name, got, counts[name])
		}
	}
}

// TestP3HasTheStory checks what the preset's comment promises: beside the
// worker of one GLUE RayCluster, two GPUs are free, on two nodes.
func TestP3HasTheStory(t *testing.T) {
	f, err := Load("p3", "")
	if err != nil {
		t.Fatal(err)
	}
	var gpus []int64
	var names []string
	for _, n := range f.Nodes() {
		quantity := n.Status.Allocatable["nvidia.com/gpu"]
		gpus = append(gpus, quantity.Value())
		names = append(names, n.Name)
	}
	slices.Sort(gpus)
	if want := []int64{0, 1, 1, 2}; !slices.Equal(gpus, want) {
		t.Errorf("GPUs of the nodes are %v, want %v", gpus, want)
	}
	if !slices.Contains(names, "p3-head-0") {
		t.Errorf("nodes are %v, want p3-head-0 among them", names)
	}
}

func TestLoadUnknown(t *testing.T) {
	_, err := Load("p4", "")
	if !matchesFault(err, `"p4": no such preset (there are autoscaled, fleet-1000, laptop, openb, p3)`) {
		t.Errorf("Load of an unknown preset: %v", err)
	}
	if _, err := Load("./p4.yaml", ""); !matchesFault(err, "reading the fleet file") {
		t.Errorf("Load of a missing file: %v", err)
	}
	if _, err := Load(openbPreset, ""); !matchesFault(err, OpenBDirEnv) {
		t.Errorf("Load of openb without its trace: %v", err)
	}
}

func TestReadOpenB(t *testing.T) {
	f, err := readOpenB(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\n" +
		"openb-node-0000,64000,262144,2,P100\nopenb-node-1212,82000,344064,0,\n"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := f.Nodes()
	if len(nodes) != 2 || nodes[0].Name != "openb-node-0000" {
		t.Fatalf("there are %d nodes, want 2 with the trace's names", len(nodes))
	}
	allocatable := nodes[0].Status.Allocatable
	cpu, memory, gpu := allocatable[corev1.ResourceCPU], allocatable[corev1.ResourceMemory], allocatable["nvidia.com/gpu"]
	if cpu.String() != "64" || memory.String() != "256Gi" || gpu.String() != "2" || nodes[0].Labels[ModelLabel] != "P100" {
		t.Errorf("node has %s CPU, %s, %s GPU %q", &cpu, &memory, &gpu, nodes[0].Labels[ModelLabel])
	}
	if _, ok := nodes[1].Status.Allocatable["nvidia.com/gpu"]; ok {
		t.Error("the node without GPUs has the resource")
	}
	for fault, text := range map[string]string{
		"columns are":             "name,cpu,memory,gpu,model\n",
		"line 2: column gpu":      "sn,cpu_milli,memory_mib,gpu,model\nx,1,1,two,T4\n",
		"wrong number of fields":  "sn,cpu_milli,memory_mib,gpu,model\nx,1\n",
		"reading the header: EOF": "",
	} {
		t.Run(fault, func(t *testing.T) {
			if _, err := readOpenB(strings.NewReader(text)); !matchesFault(err, fault) {
				t.Errorf("readOpenB(%q): %v, want a fault with %q", text, err, fault)
			}
		})
	}
}
