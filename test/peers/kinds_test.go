package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestObjectsOfEachKind(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			object, err := k.object(gang{name: "gang-1", queue: "queue-0", gpus: 1}, "queue-label")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := object.GetAPIVersion(), k.resource.GroupVersion().String(); got != want {
				t.Errorf("apiVersion %q, want that of its resource %q", got, want)
			}
			if object.GetName() != "gang-1" || object.GetLabels()["queue-label"] != "queue-0" {
				t.Errorf("name %q and labels %v", object.GetName(), object.GetLabels())
			}
			components, wraps, err := unstructured.NestedSlice(object.Object, "spec", "components")
			if err != nil || wraps != k.wraps {
				t.Fatalf("it has components: %v, %v; want %v", wraps, err, k.wraps)
			}
			if wraps {
				name, _, err := unstructured.NestedString(components[0].(map[string]any), "template", "metadata", "name")
				if err != nil || name != "gang-1" {
					t.Errorf("it wraps %q, %v; want gang-1, by which its admission is seen", name, err)
				}
			}
		})
	}
}

func TestKindsOf(t *testing.T) {
	chosen, err := kindsOf("appwrapper,raycluster")
	if err != nil || len(chosen) != 2 || chosen[0].name != "raycluster" || chosen[1].name != "appwrapper" {
		t.Errorf("kindsOf = %v, %v; want RayClusters, then AppWrappers", chosen, err)
	}
	for _, wrong := range []string{"", "pod", "rayjob,rayjob"} {
		t.Run(wrong, func(t *testing.T) {
			if chosen, err := kindsOf(wrong); err == nil {
				t.Errorf("kindsOf(%q) = %v, want an error", wrong, chosen)
			}
		})
	}
}
