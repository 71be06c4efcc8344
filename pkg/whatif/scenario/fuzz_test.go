package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/whatif/scenario"
)

// FuzzParse: whatever is in a file, it is a scenario that can be played or an
// error that says so. Files that would take long are not played.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "test", "scenarios", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no scenario found to begin with: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte("name: x\nnodes: {name: n, allocatable: {cpu: 1e3}}\nsteps: {pass: 10m}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := scenario.Parse(data)
		if err != nil {
			var faults fault.List
			if !errors.As(err, &faults) || len(faults) == 0 || parsed != nil {
				t.Fatalf("scenario %v, error %v", parsed, err)
			}
			return
		}
		if small(parsed) {
			_, _ = scenario.Run(parsed) // that it cannot be played is an answer
		}
	})
}

// small reports whether a scenario is played in no time.
func small(f *scenario.File) bool {
	pods := 0
	count := func(gangs []scenario.Gang) {
		for _, g := range gangs {
			for _, set := range g.Pods {
				if set.Count != nil {
					pods += *set.Count
				}
			}
		}
	}
	nodes := 0
	group := func(groups []scenario.NodeGroup) {
		for _, g := range groups {
			if g.Count != nil {
				nodes += *g.Count
			}
		}
	}
	count(f.Running)
	count(f.Waiting)
	group(f.Nodes)
	for _, s := range f.Steps {
		count(s.Submit)
		group(s.AddNodes)
		if len(s.Pass) > len("10m") {
			return false
		}
	}
	return pods <= 100 && nodes <= 100
}
