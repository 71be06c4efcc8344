package placement_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// FuzzSolve gives Solve nodes and gangs of any shape: it must not panic, its
// places must be valid and its certificates true.
func FuzzSolve(f *testing.F) {
	for seed := range uint64(40) {
		in := drawInstance(seed)
		nodes, _ := json.Marshal(in.nodes)
		gang, _ := json.Marshal(in.gang)
		f.Add(nodes, gang)
	}
	f.Add([]byte(`[{"name":"a","ready":true,"allocatable":{"cpu":9223372036854775807,"pods":-5}}]`),
		[]byte(`{"podSets":[{"name":"x","count":3,"template":{"requests":{"cpu":9223372036854775807,"pods":-1}}}]}`))
	f.Fuzz(func(t *testing.T, nodeText, gangText []byte) {
		var nodes []capacity.Node
		var gang workload.Workload
		if json.Unmarshal(nodeText, &nodes) != nil || json.Unmarshal(gangText, &gang) != nil || len(nodes) > 6 || !sound(&gang) {
			return
		}
		fleet := fleetOf(nodes...)
		views := fleet.Views()
		v := fleet.Solve(&gang, 5000)
		if !reflect.DeepEqual(views, fleet.Views()) {
			t.Fatal("Solve changed the fleet")
		}
		switch v.Outcome {
		case placement.Fits:
			if err := certificate.Valid(views, &gang, v.Placements); err != nil {
				t.Fatal(err)
			}
		case placement.DoesNotFit:
			if err := certificate.Check(views, &gang, v.Certificate); err != nil && !errors.Is(err, certificate.ErrTooLarge) {
				t.Fatal(err)
			}
		}
		fleet.AddUnschedulable("shape", &gang, v)
		savepoint := fleet.Begin()
		fleet.Allocate(&gang, v.Placements)
		fleet.Rollback(savepoint)
		if !reflect.DeepEqual(views, fleet.Views()) {
			t.Fatal("a what-if left something behind")
		}
	})
}

// sound reports whether a gang is as submissions are: pod sets with names of
// their own, and numbers that are not negative.
func sound(w *workload.Workload) bool {
	names := map[string]bool{}
	pods := 0
	for _, set := range w.PodSets {
		if set.Count < 0 || set.Count > 8 || names[set.Name] || set.Topology != nil && set.Topology.SliceSize < 0 {
			return false
		}
		for _, amount := range set.Template.Requests {
			if amount < 0 {
				return false
			}
		}
		names[set.Name] = true
		pods += set.Count
	}
	return pods <= 10 && len(w.PodSets) <= 4
}
