package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/resource"
)

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = apiresource.MustParse(pairs[i+1])
	}
	return list
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	got, err := Amounts(quantities(
		"cpu", "0.0001", "memory", "1.5Gi", "ephemeral-storage", "1k", "nvidia.com/gpu", "8", "example.com/part", "1000m",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := resource.List{
		"cpu": 1, "memory": 3 << 29, "ephemeral-storage": 1000, "nvidia.com/gpu": 8, "example.com/part": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
}

func TestAmountsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, quantity, want string }{
		{"cpu", "-1", "cpu: -1 is negative; want zero or more"},
		{"memory", "-1Gi", "memory: -1Gi is negative"},
		{"cpu", "9223372036854775807", "cpu: 9223372036854775807 is more than can be counted"},
		{"memory", "8Ei", "memory: 9223372036854775807 is more than can be counted"},
		{"memory", "1e100000", "memory: a quantity is more than can be counted"},
		{"nvidia.com/gpu", "0.5", "nvidia.com/gpu: 500m is not a whole number; want whole ones, such as 1"},
		{"nvidia.com/gpu", "2.000001", "nvidia.com/gpu: 2.000001 is not a whole number"},
		{"pods", "1n", "pods: 1n is not a whole number"},
		{"nvidia.com/gpu", "1e19", "nvidia.com/gpu: 10e18 is more than can be counted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Amounts(quantities(c.name, c.quantity))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s of %s: error %v, want %q in it", c.quantity, c.name, err, c.want)
			}
		})
	}
}

func TestAmountsTakesTheLargest(t *testing.T) {
	t.Parallel()
	got, err := Amounts(quantities("cpu", "9223372036854774", "memory", "9223372036854775806"))
	if err != nil {
		t.Fatal(err)
	}
	want := resource.List{"cpu": 9223372036854774000, "memory": 9223372036854775806}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
}

// TestParsedAmountsAreKubernetes: package resource has its own parser, to stay pure; it
// must agree with Kubernetes.
func TestParsedAmountsAreKubernetes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,6}(\.[0-9]{0,3})?(n|u|m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|e[+-]?[0-9]|E[0-9])?`).Draw(t, "quantity")
		for _, name := range []resource.Name{resource.CPU, resource.Memory, "nvidia.com/gpu"} {
			quantity, err := apiresource.ParseQuantity(text)
			if err != nil {
				t.Skipf("Kubernetes does not take %q: %v", text, err)
			}
			want, refused := Amounts(corev1.ResourceList{corev1.ResourceName(name): quantity})
			got, err := resource.Parse(name, text)
			if (err != nil) != (refused != nil) || err == nil && got != want[name] {
				t.Errorf("%s %q is read as %d (%v), by Kubernetes as %d (%v)", name, text, got, err, want[name], refused)
			}
		}
	})
}
