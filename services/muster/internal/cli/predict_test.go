package cli_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const cluster = `apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: glue}
spec:
  enableInTreeAutoscaling: true
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: head, image: ray, resources: {limits: {cpu: "1", memory: 2Gi}}}]}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 1
    maxReplicas: 3
    rayStartParams: {}
    template:
      spec:
        nodeSelector: {zone: a}
        tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
        containers: [{name: worker, image: ray, resources: {limits: {cpu: "1.5", memory: 16G, nvidia.com/gpu: 2}}}]
`

// predicted is the documented form of the prediction.
type predicted struct {
	Object, Group, Role string
	Count               int
	Requests            map[string]string
	NodeSelector        map[string]string
	Tolerations         []map[string]string
}

func TestPredict(t *testing.T) {
	t.Parallel()
	other := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	got := run(t, cluster+other+"---\n"+strings.Replace(cluster, "glue", "again", 1), "predict", "-f", "-", "-o", "json")
	if got.code != 0 || got.errOut != "" {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	var groups []predicted
	if err := json.Unmarshal([]byte(got.out), &groups); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	head := predicted{
		Object: "raycluster/glue", Group: "headgroup", Role: "head", Count: 1,
		Requests: map[string]string{"cpu": "1500m", "memory": "2560Mi"}, NodeSelector: map[string]string{}, Tolerations: []map[string]string{},
	}
	worker := predicted{
		Object: "raycluster/glue", Group: "gpu", Role: "worker", Count: 1,
		Requests:     map[string]string{"cpu": "1500m", "memory": "16G", "nvidia.com/gpu": "2"},
		NodeSelector: map[string]string{"zone": "a"}, Tolerations: []map[string]string{{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}},
	}
	again := []predicted{head, worker}
	again[0].Object, again[1].Object = "raycluster/again", "raycluster/again"
	if diff := cmp.Diff(append([]predicted{head, worker}, again...), groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	table := run(t, cluster, "predict", "-f", "-", "--admitted")
	for _, part := range []string{"gpu         worker   3", "total                4", "cpu 6, memory 49496440Ki, nvidia.com/gpu 6", "zone=a", "gpu:NoSchedule"} {
		if !strings.Contains(table.out, part) {
			t.Errorf("%q is not in\n%s", part, table.out)
		}
	}
}

// The fields of a group are those of docs/ray.md, in these letters, and each is
// always there.
func TestPredictedFields(t *testing.T) {
	t.Parallel()
	job := "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {generateName: train-}\nspec:\n  entrypoint: python train.py\n  rayClusterSpec:\n  " +
		strings.ReplaceAll(cluster[strings.Index(cluster, "  enableInTree"):], "\n", "\n  ")
	got := run(t, job, "predict", "-f", "-", "-o", "json")
	var groups []map[string]any
	if err := json.Unmarshal([]byte(got.out), &groups); err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v: %s%s", got.code, err, got.out, got.errOut)
	}
	var roles []any
	for _, g := range groups {
		roles = append(roles, g["role"])
		fields := slices.Sorted(maps.Keys(g))
		if diff := cmp.Diff([]string{"count", "group", "nodeSelector", "object", "requests", "role", "tolerations"}, fields); diff != "" {
			t.Errorf("fields of %v (-want +got):\n%s", g["group"], diff)
		}
	}
	if diff := cmp.Diff([]any{"head", "worker", "submitter"}, roles); diff != "" {
		t.Fatalf("roles (-want +got):\n%s", diff)
	}
	submitter := map[string]any{
		"object": "rayjob/train-*", "group": "submitter", "role": "submitter", "count": 1.0,
		"requests": map[string]any{"cpu": "500m", "memory": "200Mi"}, "nodeSelector": map[string]any{}, "tolerations": []any{},
	}
	if diff := cmp.Diff(submitter, groups[2]); diff != "" {
		t.Errorf("submitter (-want +got):\n%s", diff)
	}
}

func TestPredictProfile(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "operator.yaml")
	content := "headSidecarContainers: [{name: log, image: i, resources: {requests: {cpu: 500m}}}]\n"
	if err := os.WriteFile(profile, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, cluster, "predict", "-f", "-", "--kuberay", profile); !strings.Contains(got.out, "cpu 2, memory 2560Mi") {
		t.Errorf("with a sidecar the head is\n%s%s", got.out, got.errOut)
	}
}

func TestPredictRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, manifest string
		args           []string
		code           int
		want           string
	}{
		{"as for submit", strings.Replace(cluster, "groupName: gpu", "groupName: headgroup", 1), nil, 4,
			`raycluster/glue was rejected: Invalid: spec.workerGroupSpecs[0].groupName: is "headgroup"; the name is reserved`},
		{"no manifest", "\t{{{", nil, 4, "manifest was rejected: Invalid: manifest: is neither JSON nor YAML"},
		{"of another kind", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", nil, 4, `pod/a was rejected: Invalid: kind: is "Pod"`},
		{"predicted, but not accepted", strings.Replace(cluster, "spec:\n  enable", "spec:\n  suspend: true\n  enable", 1), nil, 0,
			"raycluster/glue would be rejected by Muster: spec.suspend: is true"},
		{"not admitted", strings.Replace(cluster, "    maxReplicas: 3\n", "", 1), []string{"--admitted"}, 4, "lets the group grow to 2147483647 pods"},
		{"no file", cluster, []string{"-f", "/nowhere/at/all.yaml"}, 2, "no such file"},
		{"no profile", cluster, []string{"--kuberay", "/nowhere/at/all.yaml"}, 2, "no such file"},
		{"nothing", "", nil, 2, "no manifest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, c.manifest, append([]string{"predict", "-f", "-"}, c.args...)...)
			if got.code != c.code || !strings.Contains(got.errOut, c.want) || c.code != 0 && got.out != "" {
				t.Errorf("%s: exit code %d, %q and %q, want %d and %q", c.name, got.code, got.out, got.errOut, c.code, c.want)
			}
		})
	}
}
