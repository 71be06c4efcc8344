package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// whole is a whole GPU, in thousandths.
const whole = 1000

// machine is a node of the trace.
type machine struct {
	cpu, memory int64 // millicores, MiB
	gpus        int
}

// pod is a pod of the trace: whole GPUs, or a share of one, or none.
type pod struct {
	cpu, memory int64
	gpus        int
	share       int64 // of each GPU, in thousandths
}

// demand is what the pod asks of GPUs, in thousandths.
func (p pod) demand() int64 { return int64(p.gpus) * p.share }

// readTrace reads the nodes and the pods of Alibaba's openb trace
// (cluster-trace-gpu-v2023) from a directory.
func readTrace(dir string) ([]machine, []pod, error) {
	var machines []machine
	err := readTable(filepath.Join(dir, "openb_node_list_gpu_node.csv"), []string{"cpu_milli", "memory_mib", "gpu"}, func(v []int64) {
		machines = append(machines, machine{cpu: v[0], memory: v[1], gpus: int(v[2])})
	})
	if err != nil {
		return nil, nil, err
	}
	var pods []pod
	err = readTable(filepath.Join(dir, "openb_pod_list_default.csv"), []string{"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(v []int64) {
		pods = append(pods, pod{cpu: v[0], memory: v[1], gpus: int(v[2]), share: v[3]})
	})
	return machines, pods, err
}

// readTable reads columns of a CSV file with a header.
func readTable(path string, names []string, row func([]int64)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the trace: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 {
		return fmt.Errorf("read %q: %d rows, error %w", path, len(rows), err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for line, cells := range rows[1:] {
		values := make([]int64, len(names))
		for i, name := range names {
			column, known := at[name]
			if !known {
				return fmt.Errorf("read %q: no column %q", path, name)
			}
			if values[i], err = strconv.ParseInt(cells[column], 10, 64); err != nil {
				return fmt.Errorf("read %q, line %d, column %s: %w", path, line+2, name, err)
			}
		}
		row(values)
	}
	return nil
}
