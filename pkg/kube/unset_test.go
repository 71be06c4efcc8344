package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// defaultedByAPIServer is what the admission plugin LimitRanger does: each container, init
// containers among them, that has no request of a resource gets the default of the namespace.
func defaultedByAPIServer(spec *corev1.PodSpec, defaults corev1.ResourceList) *corev1.PodSpec {
	created := spec.DeepCopy()
	for _, containers := range [][]corev1.Container{created.InitContainers, created.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources) // which the API server does first
			for name, amount := range defaults {
				if _, asked := containers[i].Resources.Requests[name]; !asked {
					if containers[i].Resources.Requests == nil {
						containers[i].Resources.Requests = corev1.ResourceList{}
					}
					containers[i].Resources.Requests[name] = amount
				}
			}
		}
	}
	return created
}

// TestRequestsWithDefaults: whatever containers a pod has and whatever the defaults of its
// namespace are, what is computed from its template is what the pod asks for once the API
// server has created it. Computing it twice, or with other defaults before, changes nothing.
func TestRequestsWithDefaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(label string) corev1.ResourceList {
			list := corev1.ResourceList{}
			if rapid.Bool().Draw(t, label+" cpu") {
				list["cpu"] = *apiresource.NewMilliQuantity(rapid.Int64Range(0, 3000).Draw(t, label+" millicores"), apiresource.DecimalSI)
			}
			if rapid.Bool().Draw(t, label+" memory") {
				list["memory"] = *apiresource.NewQuantity(rapid.Int64Range(0, 1000).Draw(t, label+" bytes"), apiresource.BinarySI)
			}
			return list
		}
		container := func(label string) corev1.Container {
			return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts(label + " request"), Limits: amounts(label + " limit")}}
		}
		spec := &corev1.PodSpec{}
		for range rapid.IntRange(1, 3).Draw(t, "containers") {
			spec.Containers = append(spec.Containers, container("container"))
		}
		always := corev1.ContainerRestartPolicyAlways
		for range rapid.IntRange(0, 3).Draw(t, "init containers") {
			c := container("init container")
			if rapid.Bool().Draw(t, "sidecar") {
				c.RestartPolicy = &always
			}
			spec.InitContainers = append(spec.InitContainers, c)
		}
		if rapid.Bool().Draw(t, "overhead") {
			spec.Overhead = amounts("overhead")
		}
		template, err := PodTemplate(spec)
		if err != nil {
			t.Fatal(err)
		}
		sets := []workload.PodSet{{Name: "s", Template: template}}
		for range 2 {
			defaults := amounts("default")
			want, err := PodTemplate(defaultedByAPIServer(spec, defaults))
			if err != nil {
				t.Fatal(err)
			}
			amounts, err := Amounts(defaults)
			if err != nil {
				t.Fatal(err)
			}
			sets = workload.WithDefaults(workload.WithDefaults(sets, amounts), amounts)
			if diff := cmp.Diff(want.Requests, sets[0].Template.Requests); diff != "" {
				t.Fatalf("with the defaults %v the pod asks for (-want +got):\n%s", amounts, diff)
			}
		}
		if again := workload.WithDefaults(sets, nil); !again[0].Template.Requests.Equal(template.Requests) {
			t.Fatalf("without defaults it asks for %v, as submitted for %v", again[0].Template.Requests, template.Requests)
		}
	})
}

// TestDefaultsOfALimitRange: those of containers count, of cpu and memory, and the largest.
func TestDefaultsOfALimitRange(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": apiresource.MustParse(cpu), "memory": apiresource.MustParse(memory), "nvidia.com/gpu": apiresource.MustParse("1")}
	}
	got := Defaults(&corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: list("9", "9"), DefaultRequest: list("500m", "2Gi")},
		{Type: corev1.LimitTypeContainer, DefaultRequest: list("1", "1Gi")},
		{Type: corev1.LimitTypePod, DefaultRequest: list("64", "64Gi")},
		{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": apiresource.MustParse("-1")}},
	}}})
	if want := (resource.List{"cpu": 1000, "memory": 2 << 30}); !got.Equal(want) {
		t.Errorf("the defaults are %v, want %v", got, want)
	}
}

// TestPodLevelRequestsTakeNoDefault: a request of the whole pod counts instead.
func TestPodLevelRequestsTakeNoDefault(t *testing.T) {
	t.Parallel()
	template, err := PodTemplate(&corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c"}},
		Resources:  &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": apiresource.MustParse("2")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	set := workload.WithDefaults([]workload.PodSet{{Template: template}}, resource.List{"cpu": 8000, "memory": 1 << 30})[0]
	if want := (resource.List{"cpu": 2000, "memory": 1 << 30, "pods": 1}); !set.Template.Requests.Equal(want) {
		t.Errorf("the pod asks for %v, want %v", set.Template.Requests, want)
	}
}
