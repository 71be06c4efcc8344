package event_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestLiesOfACluster: what no honest watcher or dispatcher tells is refused before it
// is added or stored.
func TestLiesOfACluster(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	many := func(n int) (labels map[string]string, amounts resource.List) {
		labels, amounts = map[string]string{}, resource.List{}
		for i := range n {
			labels[fmt.Sprint("l", i)], amounts[resource.Name(fmt.Sprint("r", i))] = "v", 1
		}
		return labels, amounts
	}
	labels, amounts := many(1001)
	_, few := many(workload.MostRangeAmounts)
	long := strings.Repeat("n", 10<<20)
	node := func(change func(*event.NodeObserved)) event.Payload {
		o := &event.NodeObserved{Version: event.Version{Session: now.UnixNano(), Seq: 1}, Node: capacity.Node{
			Cluster: "b", Name: "n", Labels: map[string]string{"zone": "a"}, Allocatable: resource.List{"cpu": 64_000, "memory": 32 << 40, "pods": 110},
		}}
		change(o)
		return o
	}
	pod := func(p event.GangPod) event.Payload {
		return &event.GangObserved{Cluster: "b", Workload: "w", Pods: []event.GangPod{p}}
	}
	limited := func(ranges ...workload.LimitRange) event.Payload {
		return &event.NamespaceObserved{Cluster: "b", Namespace: "ns", Ranges: ranges}
	}
	item := workload.LimitItem{Max: resource.List{"cpu": 1000}, Ratio: resource.List{"cpu": 1500}}
	for name, c := range map[string]struct {
		reported event.Payload
		ok       bool
	}{
		"an honest node":           {node(func(*event.NodeObserved) {}), true},
		"a clock an hour ahead":    {node(func(o *event.NodeObserved) { o.Version.Session += int64(time.Hour) }), true},
		"an honest pod":            {pod(event.GangPod{Name: "p", Attempt: 3, Requests: resource.List{"cpu": 1000}}), true},
		"an honest status":         {&event.GangStatus{Workload: "w", Attempt: 2, Later: 3, Session: now.UnixNano(), Message: "a log\x00 line"}, true},
		"a status without session": {&event.GangStatus{Workload: "w", Attempt: 1}, true},
		// What a tenant can write must not silence the watcher or dispatcher.
		"a tenant's huge pod":      {pod(event.GangPod{Name: "p", Attempt: math.MaxInt, Requests: resource.List{"memory": math.MaxInt64}}), true},
		"a node with such a pod":   {node(func(o *event.NodeObserved) { o.Node.Unmanaged = resource.List{"memory": math.MaxInt64} }), true},
		"a tenant's long owner":    {&event.GangObserved{Workload: "w", Chains: []event.PodChain{{Owners: []string{long}}}}, true},
		"a tenant's long message":  {&event.GangStatus{Message: long}, true},
		"a tenant's worker group":  {&event.GangStatus{Sizes: map[string]int{long: -1}}, true},
		"a negative amount":        {node(func(o *event.NodeObserved) { o.Node.Allocatable["cpu"] = -1 }), false},
		"the smallest amount":      {node(func(o *event.NodeObserved) { o.Node.Unmanaged = resource.List{"cpu": math.MinInt64} }), false},
		"an absurd amount":         {node(func(o *event.NodeObserved) { o.Node.Allocatable["cpu"] = 1 << 62 }), false},
		"many resources":           {node(func(o *event.NodeObserved) { o.Node.Allocatable = amounts }), false},
		"many labels":              {node(func(o *event.NodeObserved) { o.Node.Labels = labels }), false},
		"a label with NUL":         {node(func(o *event.NodeObserved) { o.Node.Labels["zone"] = "a\x00" }), false},
		"many taints":              {node(func(o *event.NodeObserved) { o.Node.Taints = make([]capacity.Taint, 201) }), false},
		"a long name":              {node(func(o *event.NodeObserved) { o.Node.Name = long }), false},
		"a long resource":          {node(func(o *event.NodeObserved) { o.Node.Allocatable[resource.Name(long)] = 1 }), false},
		"a session to come":        {node(func(o *event.NodeObserved) { o.Version.Session = math.MaxInt64 }), false},
		"a sequence past the last": {node(func(o *event.NodeObserved) { o.Version.Seq = math.MaxUint64 }), false},
		"a removal to come":        {&event.NodeRemoved{Version: event.Version{Session: math.MaxInt64}, Node: "n"}, false},
		"a list to come":           {&event.CapacitySynced{Version: event.Version{Session: math.MaxInt64}}, false},
		"a negative pod":           {pod(event.GangPod{Requests: resource.List{"cpu": -1}}), false},
		"a pod with NUL":           {pod(event.GangPod{Name: "p\x00"}), false},
		"a status to come":         {&event.GangStatus{Session: math.MaxInt64}, false},
		"an absurd attempt":        {&event.GangStatus{Attempt: math.MaxInt64}, false},
		"an absurd later attempt":  {&event.GangStatus{Attempt: 1, Later: math.MaxInt64}, false},
		"an honest LimitRange":     {limited(workload.LimitRange{Name: "r", Items: []workload.LimitItem{item}}), true},
		"many LimitRanges":         {limited(make([]workload.LimitRange, workload.MostRanges+1)...), false},
		"many items":               {limited(workload.LimitRange{Items: make([]workload.LimitItem, workload.MostRangeItems+1)}), false},
		"many amounts of an item":  {limited(workload.LimitRange{Items: []workload.LimitItem{{Min: amounts}}}), false},
		"many amounts together":    {limited(slices.Repeat([]workload.LimitRange{{Items: []workload.LimitItem{{Min: few}}}}, 3)...), false},
		"a negative ratio":         {limited(workload.LimitRange{Items: []workload.LimitItem{{Ratio: resource.List{"cpu": -1}}}}), false},
		"a LimitRange with NUL":    {limited(workload.LimitRange{Name: "r\x00"}), false},
		"a long UID":               {&event.GangStatus{UID: long}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := event.CheckReported(c.reported, now)
			if c.ok && err != nil || !c.ok && !errors.Is(err, event.ErrMalformed) {
				t.Errorf("accepted is to be %v, the error is %.300v", c.ok, err)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
