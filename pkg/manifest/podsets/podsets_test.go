package podsets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/podsets"
	"muster.dev/muster/pkg/manifest/ray"
)

const workers = "{name: workers, count: 3, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}, limits: {nvidia.com/gpu: 1}}}]}}}"

func document(spec string) string {
	return "apiVersion: muster.dev/v1\nkind: PodSets\nmetadata: {name: training}\nspec: {" + spec + "}\n"
}

func read(text string) (appwrapper.Wrapper, error) {
	tree, err := ray.Tree([]byte(text))
	if err != nil {
		return appwrapper.Wrapper{}, err
	}
	wrapped, paths, err := podsets.Wrapped(tree)
	if err != nil {
		return appwrapper.Wrapper{}, err
	}
	wrapper, err := appwrapper.Read(ray.Shipped(), wrapped)
	return wrapper, paths.Of(err)
}

// Objects come first, in their order; each pod set is as many pods as it says, by
// a Job that makes them all at once and replaces none.
func TestPodSetsBecomeJobs(t *testing.T) {
	t.Parallel()
	w, err := read(document("objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}], podSets: [" +
		strings.NewReplacer("workers", "driver", "count: 3", "count: 1", "nvidia.com/gpu: 1", "memory: 1Gi").Replace(workers) + ", " + workers + "]"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, set := range w.PodSets {
		got = append(got, fmt.Sprintf("%d pods of %v", set.Count, set.Template.Requests))
	}
	want := []string{"1 pods of cpu 2, memory 1Gi, pods 1", "3 pods of cpu 2, nvidia.com/gpu 1, pods 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod sets (-want +got):\n%s", diff)
	}
	var names []string
	for _, item := range w.Bundle.Items {
		id, err := item.Identity()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, id.Kind+"/"+id.Name)
	}
	if diff := cmp.Diff([]string{"ConfigMap/settings", "Job/training-driver", "Job/training-workers"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var job struct {
		Spec struct {
			Parallelism, Completions, BackoffLimit int
			CompletionMode                         string
			Template                               struct {
				Spec struct{ RestartPolicy string }
			}
		}
	}
	if err := json.Unmarshal(w.Bundle.Items[2].Object, &job); err != nil {
		t.Fatal(err)
	}
	if s := job.Spec; s.Parallelism != 3 || s.Completions != 3 || s.BackoffLimit != 0 || s.CompletionMode != "Indexed" || s.Template.Spec.RestartPolicy != "Never" {
		t.Errorf("the Job is %+v", job)
	}
}

// A fault names the field that was written.
func TestBadPodSets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Replace(document("podSets: ["+workers+"]"), "muster.dev/v1", "v1", 1):    `apiVersion: is "v1"; want muster.dev/v1`,
		strings.Replace(document("podSets: ["+workers+"]"), "{name: training}", "{}", 1): `metadata.name: is missing`,
		"apiVersion: muster.dev/v1\nkind: PodSets\nmetadata: {name: a}\n":                `spec: is missing; want podSets`,
		document("podSets: []"):              `spec.podSets: is empty`,
		document("podSets: 7"):               `spec.podSets: is no list`,
		document("podSets: [7]"):             `spec.podSets[0]: is no object`,
		document("podsets: [], podSets: []"): `spec.podsets: is no field; want podSets, objects`,
		document("podSets: [" + strings.Replace(workers, "name: workers", "name: W", 1) + "]"):             `spec.podSets[0].name: is "W"`,
		document("podSets: [" + strings.Replace(workers, "count: 3", "count: 0", 1) + "]"):                 `spec.podSets[0].count: is 0; want a whole number from 1`,
		document("podSets: [" + strings.Replace(workers, "count: 3", "count: 1.5", 1) + "]"):               `spec.podSets[0].count: is 1.5`,
		document("podSets: [" + strings.Replace(workers, "count: 3", "count: 9999999999999", 1) + "]"):     `spec.podSets[0].count: is 9999999999999`,
		document("podSets: [" + strings.Replace(workers, "count: 3, ", "", 1) + "]"):                       `spec.podSets[0].count: is null`,
		document("podSets: [{name: a, count: 1}]"):                                                         `spec.podSets[0].template.spec: is missing`,
		document("podSets: [" + workers + ", " + workers + "]"):                                            `spec.podSets[1].name: is "workers", as that of spec.podSets[0] is`,
		document("podSets: [" + strings.Replace(workers, "cpu: 2", "cpu: -2", 1) + "]"):                    `spec.podSets[0].template.spec`,
		document("objects: [{kind: ConfigMap, metadata: {name: s}}], podSets: [" + workers + "]"):          `spec.objects[0].apiVersion: is missing`,
		document("objects: [{apiVersion: v1, kind: ConfigMap, metadata: {}}], podSets: [" + workers + "]"): `spec.objects[0].metadata.name: is missing`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := read(text)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "components") {
				t.Errorf("%s\nis refused with %v; want %s", text, err, want)
			}
			if !errors.Is(err, podsets.ErrInvalid) && !errors.Is(err, appwrapper.ErrInvalid) && !errors.Is(err, ray.ErrInvalid) {
				t.Errorf("%v wraps nothing", err)
			}
		})
	}
}

// FuzzWrapped: whatever is written is refused, or is an AppWrapper that package
// appwrapper reads or refuses; nothing panics.
func FuzzWrapped(f *testing.F) {
	f.Add([]byte(document("podSets: [" + workers + "]")))
	f.Add([]byte(document("objects: [{apiVersion: v1, kind: Secret, metadata: {name: s}}, 7], podSets: [{name: a, count: 2, template: {spec: {}}}]")))
	f.Add([]byte(document("podSets: [{name: a, count: 2, template: {spec: {containers: [{name: c, image: i, resources: {requests: {memory: 1e99999999}}}, {name: d, image: i, resources: {requests: {memory: 1}}}]}}}]")))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := ray.Tree(data)
		if err != nil || !podsets.Is(tree) {
			return
		}
		wrapped, paths, err := podsets.Wrapped(tree)
		if err != nil {
			if !errors.Is(err, podsets.ErrInvalid) || len(err.Error()) > 4000 {
				t.Fatalf("error of %d bytes: %v", len(err.Error()), err)
			}
			return
		}
		if _, err := appwrapper.Read(ray.Shipped(), wrapped); paths.Of(err) != nil && !errors.Is(paths.Of(err), appwrapper.ErrInvalid) && !errors.Is(err, ray.ErrInvalid) {
			t.Fatal(err)
		}
	})
}
