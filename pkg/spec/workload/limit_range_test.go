package workload_test

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// setOfAsks is a pod set whose pods have these containers.
func setOfAsks(count int, pod ...workload.ContainerAsk) workload.PodSet {
	return workload.PodSet{Name: "workers", Count: count, Template: workload.Template{Asks: [][]workload.ContainerAsk{pod}}}
}

func cpu(amount int64) resource.List { return resource.List{resource.CPU: amount} }

func TestBeyondSaysWhich(t *testing.T) {
	t.Parallel()
	worker := workload.ContainerAsk{Name: "worker", Requests: cpu(8000), Limits: cpu(96000)}
	for name, c := range map[string]struct {
		pod  []workload.ContainerAsk
		item workload.LimitItem
		want string
	}{
		"a limit above the maximum": {[]workload.ContainerAsk{worker}, workload.LimitItem{Max: cpu(64000)}, `container "worker" of pod set "workers" has a limit of cpu 96, and LimitRange "limits" allows a container 64 at most`},
		"no limit":                  {[]workload.ContainerAsk{{Name: "worker"}}, workload.LimitItem{Max: cpu(64000)}, `container "worker" of pod set "workers" has no limit of cpu, and LimitRange "limits" allows a container 64 at most`},
		"less than the minimum":     {[]workload.ContainerAsk{worker}, workload.LimitItem{Min: cpu(9000)}, `container "worker" of pod set "workers" asks for cpu 8, and LimitRange "limits" demands at least 9 of a container`},
		"no request":                {[]workload.ContainerAsk{{Name: "worker"}}, workload.LimitItem{Min: resource.List{"memory": 1 << 30}}, `container "worker" of pod set "workers" asks for no memory, and LimitRange "limits" demands at least 1Gi of a container`},
		"a ratio":                   {[]workload.ContainerAsk{worker}, workload.LimitItem{Ratio: cpu(1500)}, `container "worker" of pod set "workers" asks for cpu 8 with a limit of 96, and LimitRange "limits" allows a container a limit of 1.5 times the request`},
		"a ratio of nothing":        {[]workload.ContainerAsk{{Name: "worker", Requests: cpu(0), Limits: cpu(1)}}, workload.LimitItem{Ratio: cpu(2000)}, `container "worker" of pod set "workers" asks for no cpu, and LimitRange "limits" allows a container a limit of 2 times the request`},
		"a pod":                     {[]workload.ContainerAsk{worker, worker}, workload.LimitItem{Pods: true, Max: cpu(96000)}, `a pod of pod set "workers" has a limit of cpu 192, and LimitRange "limits" allows a pod 96 at most`},
		"an init container beside a sidecar": {[]workload.ContainerAsk{
			{Name: "proxy", Kind: workload.AskSidecar, Requests: cpu(1000)}, {Name: "load", Kind: workload.AskInit, Requests: cpu(7000)}, {Name: "worker", Requests: cpu(2000)},
		}, workload.LimitItem{Pods: true, Min: cpu(9000)}, `a pod of pod set "workers" asks for cpu 8, and LimitRange "limits" demands at least 9 of a pod`},
		"a sidecar beside the others": {[]workload.ContainerAsk{
			{Name: "proxy", Kind: workload.AskSidecar, Requests: cpu(1000)}, {Name: "load", Kind: workload.AskInit, Requests: cpu(1000)}, {Name: "worker", Requests: cpu(2000)},
		}, workload.LimitItem{Pods: true, Min: cpu(9000)}, `a pod of pod set "workers" asks for cpu 3, and LimitRange "limits" demands at least 9 of a pod`},
		"a limit by default": {[]workload.ContainerAsk{{Name: "worker", Requests: cpu(8000)}}, workload.LimitItem{Default: cpu(4000)}, `container "worker" of pod set "workers" asks for cpu 8, and the LimitRanges of its namespace give it a limit of 4`},
		"all kept":           {[]workload.ContainerAsk{worker}, workload.LimitItem{Min: cpu(8000), Max: cpu(96000), Ratio: cpu(12000), Default: cpu(1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ranges := []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{c.item}}}
			if got := workload.Beyond([]workload.PodSet{setOfAsks(2, c.pod...)}, ranges); got != c.want {
				t.Errorf("it is\n%s\nwant\n%s", got, c.want)
			}
			if got := workload.Beyond([]workload.PodSet{setOfAsks(0, c.pod...)}, ranges); got != "" {
				t.Errorf("of a set without pods it is %s", got)
			}
		})
	}
}

// TestDefaultsThatDifferAreNotCompared: the API server takes those of any LimitRange. What a
// container asks for itself is compared.
func TestDefaultsThatDifferAreNotCompared(t *testing.T) {
	t.Parallel()
	ranges := []workload.LimitRange{
		{Name: "a", Items: []workload.LimitItem{{Default: cpu(4000), DefaultRequest: cpu(4000), Max: cpu(5000)}}},
		{Name: "b", Items: []workload.LimitItem{{Default: cpu(6000), DefaultRequest: cpu(6000)}}},
	}
	beyond := func(ask workload.ContainerAsk) string {
		return workload.Beyond([]workload.PodSet{setOfAsks(1, ask)}, ranges)
	}
	if got := beyond(workload.ContainerAsk{Name: "c"}); got != "" {
		t.Errorf("with unknown defaults it is beyond: %s", got)
	}
	ranges = append(ranges, workload.LimitRange{Name: "c", Items: []workload.LimitItem{{Pods: true, Max: cpu(1000)}}})
	if got := beyond(workload.ContainerAsk{Name: "c"}); got != "" {
		t.Errorf("with unknown defaults of its containers the pod is beyond: %s", got)
	}
	if got := beyond(workload.ContainerAsk{Name: "c", Requests: cpu(1000), Limits: cpu(6000)}); got == "" {
		t.Error("a limit of its own is not compared")
	}
	ranges[1].Items[0].Default, ranges[1].Items[0].DefaultRequest = cpu(4000), cpu(4000)
	ranges[0].Items[0].Max = cpu(3000)
	if got := beyond(workload.ContainerAsk{Name: "c"}); got == "" {
		t.Error("a default in common is not compared")
	}
}

// TestUnknownContainersAreNotCompared: such as those of workloads of an earlier version, and of
// one of two pods with very many.
func TestUnknownContainersAreNotCompared(t *testing.T) {
	t.Parallel()
	ranges := []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{{Min: cpu(1)}}}}
	if got := workload.Beyond([]workload.PodSet{{Name: "workers", Count: 1}}, ranges); got != "" {
		t.Errorf("it is beyond: %s", got)
	}
	large := slices.Repeat([]workload.PodSet{setOfAsks(1, make([]workload.ContainerAsk, workload.MostAsks-1)...)}, 9)
	if got := workload.Beyond(large[:8], ranges); got == "" {
		t.Error("2,048 are not compared")
	}
	if got := workload.Beyond(large, ranges); got != "" {
		t.Errorf("of 2,304 it is beyond: %s", got)
	}
	few := setOfAsks(1, workload.ContainerAsk{Name: "few", Requests: cpu(1)}).Template
	many := workload.Template{Asks: [][]workload.ContainerAsk{make([]workload.ContainerAsk, workload.MostAsks-1)}}
	if got := workload.SizeOfAsks(many.Asks); got != workload.MostAsks {
		t.Fatalf("the size is %d", got)
	}
	for name, c := range map[string]struct {
		one, other workload.Template
		want       int // pods
	}{"both": {few, few, 2}, "unknown first": {workload.Template{}, few, 1}, "too many": {few, many, 1}} {
		t.Run(name, func(t *testing.T) {
			if got := c.one.Max(c.other).Asks; len(got) != c.want {
				t.Errorf("it has %d pods, want %d", len(got), c.want)
			}
		})
	}
	set := workload.PodSet{Name: "workers", Count: 1, Template: many}
	if err := workload.CheckComplexity([]workload.PodSet{set}); err != nil {
		t.Error(err)
	}
	set.Template.Asks = append(set.Template.Asks, nil)
	if err := workload.CheckComplexity([]workload.PodSet{set}); err == nil || !strings.Contains(err.Error(), `pod set "workers" lists 257 containers`) {
		t.Errorf("with one more: %v", err)
	}
}
