package kube

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAsksOfAPod: each container with its kind, limits as requests, and zero amounts; none
// where they are not what the API server compares.
func TestAsksOfAPod(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range workload.MostAsks {
		many += fmt.Sprintf("\n- {name: c%d}", i)
	}
	for name, c := range map[string]struct {
		spec string
		want [][]workload.ContainerAsk
	}{
		"containers": {`
initContainers:
- {name: wait, resources: {requests: {cpu: "0"}}}
- {name: proxy, restartPolicy: Always, resources: {limits: {memory: 1Gi}}}
containers: [{name: ray, resources: {requests: {cpu: "1"}, limits: {cpu: "2", nvidia.com/gpu: "4"}}}]`, [][]workload.ContainerAsk{{
			{Name: "wait", Kind: workload.AskInit, Requests: resource.List{"cpu": 0}},
			{Name: "proxy", Kind: workload.AskSidecar, Requests: resource.List{"memory": 1 << 30}, Limits: resource.List{"memory": 1 << 30}},
			{Name: "ray", Requests: resource.List{"cpu": 1000, "nvidia.com/gpu": 4}, Limits: resource.List{"cpu": 2000, "nvidia.com/gpu": 4}},
		}}},
		"resources of the pod": {`
resources: {requests: {cpu: "1"}}
containers: [{name: ray}]`, nil},
		"a part of a byte": {`containers: [{name: ray, resources: {requests: {memory: 1500m}}}]`, nil},
		"many":             {"containers:" + many, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := PodTemplate(specOf(t, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, template.Asks); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRangeOfALimitRange: bounds of volumes do not count, and one that cannot be reported
// exactly is not known.
func TestRangeOfALimitRange(t *testing.T) {
	t.Parallel()
	list := func(name corev1.ResourceName, text string) corev1.ResourceList {
		return corev1.ResourceList{name: apiresource.MustParse(text)}
	}
	of := func(items ...corev1.LimitRangeItem) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: items}}
	}
	got := RangeOf(of(
		corev1.LimitRangeItem{
			Type: corev1.LimitTypeContainer, Min: list("cpu", "100m"), Max: list("memory", "1Gi"), Default: list("cpu", "2"),
			DefaultRequest: list("cpu", "1"), MaxLimitRequestRatio: list("cpu", "1.5"),
		},
		corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage", "1Gi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "8")},
	))
	want := &workload.LimitRange{Name: "limits", Items: []workload.LimitItem{
		{
			Min: resource.List{"cpu": 100}, Max: resource.List{"memory": 1 << 30}, Default: resource.List{"cpu": 2000},
			DefaultRequest: resource.List{"cpu": 1000}, Ratio: resource.List{"cpu": 1500},
		},
		{Pods: true, Max: resource.List{"cpu": 8000}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the LimitRange (-want +got):\n%s", diff)
	}
	container := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
	wide := corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: corev1.ResourceList{}}
	for i := range workload.MostRangeAmounts + 1 {
		wide.Min[corev1.ResourceName(fmt.Sprintf("example.com/device-%d", i))] = apiresource.MustParse("1")
	}
	for name, limits := range map[string]*corev1.LimitRange{
		"many items":          of(slices.Repeat([]corev1.LimitRangeItem{container}, workload.MostRangeItems+1)...),
		"many amounts":        of(wide),
		"a part of a byte":    of(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("memory", "1500m")}),
		"more than is known":  of(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("memory", "1e30")}),
		"a negative one":      of(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: list("cpu", "-1")}),
		"a ratio beyond that": of(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: list("cpu", "1e17")}),
	} {
		if got := RangeOf(limits); got != nil {
			t.Errorf("%s: %+v, want none", name, got)
		}
	}
}

// limitRanger is the admission plugin of that name: it fills in what is missing, one LimitRange
// after another, and compares the rest (kubernetes v1.36, plugin/pkg/admission/limitranger).
// Then come the rules of pods by which a request is at most the limit.
func limitRanger(pod *corev1.PodSpec, ranges []*corev1.LimitRange) error {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := &containers[i].Resources
			defaultRequests(c)
			for _, r := range ranges {
				requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
				for _, item := range r.Spec.Limits {
					if item.Type == corev1.LimitTypeContainer {
						maps.Copy(requests, item.DefaultRequest)
						maps.Copy(limits, item.Default)
					}
				}
				maps.Copy(requests, c.Requests)
				maps.Copy(limits, c.Limits)
				c.Requests, c.Limits = requests, limits
			}
		}
	}
	var faults []error
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := &containers[i].Resources
			for _, r := range ranges {
				for _, item := range r.Spec.Limits {
					if item.Type == corev1.LimitTypeContainer {
						faults = append(faults, bounded(item, c.Requests, c.Limits))
					}
				}
			}
			for name, limit := range c.Limits {
				if request := c.Requests[name]; request.Cmp(limit) > 0 {
					faults = append(faults, errors.New("must be less than or equal to the limit"))
				}
			}
		}
	}
	for _, r := range ranges {
		for _, item := range r.Spec.Limits {
			if item.Type == corev1.LimitTypePod {
				faults = append(faults, bounded(item,
					addedUp(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }),
					addedUp(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })))
			}
		}
	}
	return errors.Join(faults...)
}

func addedUp(pod *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	add := func(to, list corev1.ResourceList) {
		for name, quantity := range list {
			sum := to[name]
			sum.Add(quantity)
			to[name] = sum
		}
	}
	most := func(to, list corev1.ResourceList) {
		for name, quantity := range list {
			if known, there := to[name]; !there || quantity.Cmp(known) > 0 {
				to[name] = quantity
			}
		}
	}
	all, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Containers {
		add(all, of(&pod.Containers[i]))
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		now := corev1.ResourceList{}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(all, of(c))
			add(sidecars, of(c))
		} else {
			add(now, of(c))
		}
		add(now, sidecars)
		most(peak, now)
	}
	most(all, peak)
	return all
}

func bounded(item corev1.LimitRangeItem, requests, limits corev1.ResourceList) error {
	values := func(request, limit, bound apiresource.Quantity) (int64, int64, int64) {
		if r, l, b := request.Value(), limit.Value(), bound.Value(); max(r, l, b) > apiresource.MaxMilliValue {
			return r, l, b
		}
		return request.MilliValue(), limit.MilliValue(), bound.MilliValue()
	}
	for name, bound := range item.Min {
		_, asks := requests[name]
		_, limited := limits[name]
		if request, limit, least := values(requests[name], limits[name], bound); !asks || request < least || limited && limit < least {
			return errors.New("minimum")
		}
	}
	for name, bound := range item.Max {
		_, limited := limits[name]
		if request, limit, most := values(requests[name], limits[name], bound); !limited || limit > most || request > most {
			return errors.New("maximum")
		}
	}
	for name, bound := range item.MaxLimitRequestRatio {
		request, limit, _ := values(requests[name], limits[name], bound)
		if request == 0 || limit == 0 || float64(limit)/float64(request)*1000 > float64(bound.MilliValue()) {
			return errors.New("ratio")
		}
	}
	return nil
}

// TestBeyondIsWhatTheAPIServerRefuses: whatever a pod and the LimitRanges of its namespace are,
// the plugin, in any order of the LimitRanges, refuses a pod that is beyond them. It refuses no
// other pod, unless they give different defaults.
func TestBeyondIsWhatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	within, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(label string, most int64) corev1.ResourceList {
			list := corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{"cpu", "memory"} {
				if !rapid.Bool().Draw(t, label+" "+string(name)) {
					continue
				}
				amount := rapid.Int64Range(0, most).Draw(t, label)
				if rapid.IntRange(0, 50).Draw(t, label+" is large") == 0 {
					amount += math.MaxInt64 / 1000
				}
				list[name] = *apiresource.NewQuantity(amount, apiresource.DecimalSI)
				if name == "cpu" {
					list[name] = *apiresource.NewMilliQuantity(amount, apiresource.DecimalSI)
				}
			}
			return list
		}
		container := func(label string) corev1.Container {
			c := corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts(label+" request", 12), Limits: amounts(label+" limit", 12)}}
			for name, limit := range c.Resources.Limits { // a manifest with less is refused
				if request := c.Resources.Requests[name]; request.Cmp(limit) > 0 {
					c.Resources.Requests[name] = limit
				}
			}
			return c
		}
		pod := &corev1.PodSpec{}
		for range rapid.IntRange(1, 2).Draw(t, "containers") {
			pod.Containers = append(pod.Containers, container("container"))
		}
		always := corev1.ContainerRestartPolicyAlways
		for range rapid.IntRange(0, 2).Draw(t, "init containers") {
			c := container("init container")
			if rapid.Bool().Draw(t, "sidecar") {
				c.RestartPolicy = &always
			}
			pod.InitContainers = append(pod.InitContainers, c)
		}
		var ranges []*corev1.LimitRange
		var reported []workload.LimitRange
		for range max(1, rapid.IntRange(-2, 2).Draw(t, "LimitRanges")) {
			r := &corev1.LimitRange{}
			for range max(1, rapid.IntRange(-1, 2).Draw(t, "items")) {
				item := corev1.LimitRangeItem{Type: rapid.SampledFrom([]corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod}).Draw(t, "type")}
				switch rapid.SampledFrom([]string{"min", "max", "ratio", "none"}).Draw(t, "bound") { // with all of them nothing passes
				case "min":
					item.Min = amounts("min", 30)
				case "max":
					item.Max = amounts("max", 30)
				case "ratio":
					item.MaxLimitRequestRatio = corev1.ResourceList{"cpu": *apiresource.NewMilliQuantity(rapid.Int64Range(0, 5000).Draw(t, "ratio"), apiresource.DecimalSI)}
				}
				if item.Type == corev1.LimitTypeContainer && rapid.Bool().Draw(t, "has defaults") {
					item.Default, item.DefaultRequest = amounts("default", 12), amounts("default request", 12)
				}
				r.Spec.Limits = append(r.Spec.Limits, item)
			}
			ranges = append(ranges, r)
			reported = append(reported, *RangeOf(r))
		}
		template, err := PodTemplate(pod)
		if err != nil {
			t.Fatal(err)
		}
		got := workload.Beyond([]workload.PodSet{{Name: "s", Count: 1, Template: template}}, reported)
		one := limitRanger(pod.DeepCopy(), ranges)
		slices.Reverse(ranges)
		other := limitRanger(pod.DeepCopy(), ranges)
		if got != "" {
			refused++
		} else {
			within++
		}
		switch {
		case got != "" && (one == nil || other == nil):
			t.Fatalf("beyond: %s; the API server: %v, or %v", got, one, other)
		case got == "" && (one != nil && other != nil) && len(ranges) == 1:
			t.Fatalf("not beyond; the API server: %v", one)
		}
		if strings.ContainsAny(got, "\n") {
			t.Errorf("the reason is %q", got)
		}
	})
	if within == 0 || refused == 0 {
		t.Errorf("%d pods are within and %d beyond, want some of both", within, refused)
	}
}
