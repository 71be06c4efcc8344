package event_test

import (
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestDataIsBoundedBeforeItIsDecoded: what the keys of clusters can publish takes little memory, however
// it is nested and however many values it has. The largest honest gang is decoded.
func TestDataIsBoundedBeforeItIsDecoded(t *testing.T) {
	gang := &event.GangObserved{Cluster: "c", Workload: "w"}
	for range workload.MostPods {
		gang.Pods = append(gang.Pods, event.GangPod{
			Name: "p", Attempt: 1, PodSet: "s", RayCluster: "r", Chain: 1, Node: "n", Phase: "Running", Ready: true,
			Requests: resource.List{"cpu": 1, "memory": 1, "pods": 1, "nvidia.com/gpu": 1},
		})
	}
	large, err := json.Marshal(gang)
	if err != nil {
		t.Fatal(err)
	}
	deep := func(field string) []byte {
		return []byte(`{"` + field + `":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`)
	}
	many := func(field string) []byte {
		return []byte(`{"` + field + `":[` + strings.Repeat("{},", 300_000) + `{}]}`)
	}
	for name, c := range map[string]struct {
		payload event.Payload
		data    []byte
		ok      bool
	}{
		"the largest gang":  {&event.GangObserved{}, large, true},
		"many pods":         {&event.GangObserved{}, many("pods"), false},
		"a deep pod":        {&event.GangObserved{}, deep("pods"), false},
		"many taints":       {&event.NodeObserved{}, []byte(`{"node":` + string(many("taints")) + `}`), false},
		"many ranges":       {&event.NamespaceObserved{}, many("ranges"), false},
		"many nodes":        {&event.CapacitySynced{}, many("nodes"), false},
		"many objects":      {&event.GangStatus{}, many("objects"), false},
		"a deep status":     {&event.GangStatus{}, deep("objects"), false},
		"many pod sets":     {&event.WorkloadSubmitted{}, []byte(`{"workload":` + string(many("podSets")) + `}`), false},
		"a deep manifest":   {&event.WorkloadSubmitted{}, deep("manifest"), false},
		"many of a removal": {&event.NodeRemoved{}, many("x"), false},
		"many of a request": {&event.PermissionAsked{}, many("x"), false},
		"many of a cancel":  {&event.WorkloadCancel{}, many("x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			envelope := event.Envelope{ID: "1", Type: c.payload.EventType(), Data: c.data}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := event.Decode(envelope)
			runtime.ReadMemStats(&after)
			if c.ok && err != nil || !c.ok && !errors.Is(err, event.ErrMalformed) {
				t.Fatalf("accepted is to be %t, the error is %.300v", c.ok, err)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; !c.ok && taken > 64<<10 {
				t.Errorf("%d bytes are taken to refuse it", taken)
			}
		})
	}
}

// TestLiesOfAnIntake: what no intake makes of an object is refused.
func TestLiesOfAnIntake(t *testing.T) {
	t.Parallel()
	honest := func() *event.WorkloadSubmitted {
		return &event.WorkloadSubmitted{Manifest: json.RawMessage(`{"kind":"RayCluster"}`), Workload: workload.Workload{
			ID: "w", Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: "r", Digest: "d", Submitter: "kubernetes/west/ann",
			PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 2, Template: workload.Template{
				Requests: resource.List{"cpu": math.MaxInt64, "pods": 1}, Unset: workload.Unset{"memory": {{Base: 1, Times: 2}}},
				Asks: [][]workload.ContainerAsk{{{Name: "c", Requests: resource.List{"cpu": 0}}}},
			}, Topology: &workload.Topology{SliceSize: 2, SliceLevel: "rack"}, Clusters: "!b,a=1"}},
		}}
	}
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		change func(*event.WorkloadSubmitted)
		want   string
	}{
		"an honest one":         {func(*event.WorkloadSubmitted) {}, ""},
		"a long priority class": {func(s *event.WorkloadSubmitted) { s.PriorityClass = long }, "priority class"},
		"a long warning":        {func(s *event.WorkloadSubmitted) { s.Warnings = []string{long} }, "warning"},
		"a long digest":         {func(s *event.WorkloadSubmitted) { s.Workload.Digest = long }, "digest"},
		"no digest":             {func(s *event.WorkloadSubmitted) { s.Workload.Digest = "" }, "digest"},
		"a long role":           {func(s *event.WorkloadSubmitted) { s.Workload.PodSets[0].Role = long }, "role"},
		"a long resource":       {func(s *event.WorkloadSubmitted) { s.Workload.PodSets[0].Template.Requests[resource.Name(long)] = 1 }, "requests"},
		"many kinds":            {func(s *event.WorkloadSubmitted) { s.Workload.PodSets[0].Kinds = make([]workload.ObjectKind, 257) }, "kinds"},
		"many exit codes": {func(s *event.WorkloadSubmitted) {
			s.Workload.Life.Tolerance = &workload.Tolerance{TerminalExitCodes: make([]int32, 1001)}
		}, "exit codes"},
		"an unsorted selector": {func(s *event.WorkloadSubmitted) { s.Workload.PodSets[0].PreferClusters = "b,a" }, "clusters"},
		"an unknown mode":      {func(s *event.WorkloadSubmitted) { s.Workload.PodSets[0].Topology.Mode = "near" }, "topology.mode"},
		"many sums of a default": {func(s *event.WorkloadSubmitted) {
			s.Workload.PodSets[0].Template.Unset["cpu"] = make([]workload.DefaultSum, 9)
		}, "unset"},
		"an unending ask": {func(s *event.WorkloadSubmitted) { s.Workload.PodSets[0].Template.Asks[0][0].Name = long }, "asks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			submitted := honest()
			c.change(submitted)
			err := event.CheckReported(submitted, time.Now())
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, event.ErrMalformed) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %.500v, want one about %q", err, c.want)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	if err := event.CheckReported(&event.WorkloadCancel{Workload: "w", Why: long}, time.Now()); !errors.Is(err, event.ErrMalformed) {
		t.Errorf("a long reason of a cancellation: %v", err)
	}
}
