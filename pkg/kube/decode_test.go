package kube

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	rayv1alpha1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// TestDecodeFindsEveryQuantity puts a hostile quantity at each place of a type that has
// one: none may reach the parser.
func TestDecodeFindsEveryQuantity(t *testing.T) {
	t.Parallel()
	for _, as := range []any{
		&corev1.PodSpec{}, &corev1.Pod{}, &corev1.Node{}, &rayv1.RayCluster{}, &rayv1.RayJob{}, &rayv1.RayService{}, &rayv1.RayCronJob{},
		&rayv1alpha1.RayCluster{}, &rayv1alpha1.RayJob{}, &rayv1alpha1.RayService{}, &corev1.ResourceList{},
	} {
		t.Run(reflect.TypeOf(as).Elem().String(), func(t *testing.T) {
			t.Parallel()
			found := 0
			each(reflect.TypeOf(as), map[reflect.Type]int{}, func(tree any) {
				found++
				into := reflect.New(reflect.TypeOf(as).Elem()).Interface()
				err := Decode("", tree, into)
				var bad *QuantityError
				if !errors.As(err, &bad) || bad.Path == "" {
					encoded, _ := json.Marshal(tree)
					t.Errorf("%s: error %v, want a QuantityError with a path", encoded, err)
				}
			})
			if found == 0 {
				t.Error("no quantity found in the type")
			}
			t.Logf("%d places", found)
		})
	}
}

// each calls try with a tree for each path from the type to a quantity. It shares no code
// with Decode: it reads the names of fields as encoding/json does.
func each(t reflect.Type, seen map[reflect.Type]int, try func(tree any)) {
	switch {
	case t == reflect.TypeFor[apiresource.Quantity]():
		try("1e-99999999")
	case t.Kind() == reflect.Pointer:
		each(t.Elem(), seen, try)
	case t.Kind() == reflect.Slice:
		each(t.Elem(), seen, func(tree any) { try([]any{tree}) })
	case t.Kind() == reflect.Map:
		each(t.Elem(), seen, func(tree any) { try(map[string]any{"k": tree}) })
	case t.Kind() == reflect.Struct:
		if seen[t] > 0 {
			return
		}
		seen[t]++
		defer func() { seen[t]-- }()
		for _, field := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case len(field.Index) > 1, name == "-", !field.IsExported():
			case field.Anonymous && (name == "" || strings.Contains(options, "inline")):
				each(field.Type, seen, try)
			default:
				each(field.Type, seen, func(tree any) { try(map[string]any{name: tree}) })
			}
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	pod := func(quantity any) map[string]any {
		return map[string]any{"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"limits": map[string]any{"cpu": quantity}}}}}
	}
	for _, c := range []struct {
		name     string
		quantity any
		want     string
	}{
		{"sound", "2", ""},
		{"a number", json.Number("2"), ""},
		{"null", nil, ""},
		{"exponent", "1e99999999", `spec.containers[0].resources.limits.cpu: "1e99999999" is no quantity; want a Kubernetes quantity such as "500m", "4" or "16Gi"`},
		{"exponent of a number", json.Number("1e99999999"), `"1e99999999" is no quantity`},
		{"negative exponent", "1e-99999999", `"1e-99999999" is no quantity`},
		{"many digits", strings.Repeat("9", 400_000), `is no quantity`},
		{"negative", "-1", `"-1" is negative; want zero or more`},
		{"too much", "9e18", `"9e18" is more than can be counted`},
		{"a list", []any{}, "is a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var spec corev1.PodSpec
			err := Decode("spec", pod(c.quantity), &spec)
			if c.want == "" && err == nil {
				return
			}
			if c.want == "" || err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestRequestsOfHostilePods: pods of the API server come decoded, and every tenant can
// create hostile ones.
func TestRequestsOfHostilePods(t *testing.T) {
	t.Parallel()
	one := corev1.Container{Resources: corev1.ResourceRequirements{Requests: quantities("memory", "1")}}
	vast := corev1.Container{Resources: corev1.ResourceRequirements{Requests: quantities("memory", "1e99999999")}}
	for name, spec := range map[string]corev1.PodSpec{
		"containers":     {Containers: []corev1.Container{vast, one}},
		"initContainers": {InitContainers: []corev1.Container{vast}, Containers: []corev1.Container{one}},
		"overhead":       {Containers: []corev1.Container{one}, Overhead: quantities("memory", "1e99999999")},
		"resources":      {Containers: []corev1.Container{one}, Resources: &corev1.ResourceRequirements{Limits: quantities("memory", "1e99999999")}},
		"limits":         {Containers: []corev1.Container{one, {Resources: corev1.ResourceRequirements{Limits: quantities("memory", "1e99999999")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := Requests(&corev1.Pod{Spec: spec}); err == nil {
				t.Errorf("requests %v, want an error", got)
			}
			if got, err := PodTemplate(&spec); err == nil {
				t.Errorf("template %v, want an error", got)
			}
		})
	}
}
