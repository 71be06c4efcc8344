package fleet

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	openbPreset = "openb"
	openbNodes  = "openb_node_list_gpu_node.csv"
	// OpenBDirEnv names the directory of the trace in the environment.
	OpenBDirEnv = "MUSTER_OPENB_DIR"
	// ModelLabel is the label with which NVIDIA's discovery names a GPU.
	ModelLabel = "nvidia.com/gpu.product"
)

var openbColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}

// loadOpenB builds a fleet from the node list of Alibaba's trace.
func loadOpenB(dir string) (Fleet, error) {
	if dir == "" {
		return Fleet{}, fmt.Errorf("preset %q: needs the directory of the trace (with %s): give --openb-dir or set %s",
			openbPreset, openbNodes, OpenBDirEnv)
	}
	path := filepath.Join(dir, openbNodes)
	file, err := os.Open(path)
	if err != nil {
		return Fleet{}, fmt.Errorf("preset %q: reading the trace: %w", openbPreset, err)
	}
	defer file.Close()
	f, err := readOpenB(file)
	if err != nil {
		return Fleet{}, fmt.Errorf("preset %q: %q: %w", openbPreset, path, err)
	}
	return f, nil
}

// readOpenB reads the node list, each node as a group of its own: the names are
// the trace's, so that its pods can be compared with what is seen here.
func readOpenB(r io.Reader) (Fleet, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = len(openbColumns)
	header, err := rows.Read()
	if err != nil {
		return Fleet{}, fmt.Errorf("reading the header: %w", err)
	}
	if !slices.Equal(header, openbColumns) {
		return Fleet{}, fmt.Errorf("columns are %q, want %q", header, openbColumns)
	}
	var f Fleet
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Fleet{}, err
		}
		g, err := openbGroup(row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return Fleet{}, fmt.Errorf("line %d: %w", line, err)
		}
		f.Groups = append(f.Groups, g)
	}
	return f, f.Validate()
}

func openbGroup(row []string) (Group, error) {
	var values [3]int64
	for i := range values {
		n, err := strconv.ParseInt(row[i+1], 10, 64)
		if err != nil {
			return Group{}, fmt.Errorf("column %s: %w", openbColumns[i+1], err)
		}
		values[i] = n
	}
	g := Group{
		Name: row[0],
		Allocatable: map[corev1.ResourceName]resource.Quantity{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(values[0], resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(values[1]<<20, resource.BinarySI),
		},
		Labels: map[string]string{ModelLabel: cmp.Or(row[4], "none")},
	}
	if gpus := values[2]; gpus > 0 {
		g.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return g, nil
}
