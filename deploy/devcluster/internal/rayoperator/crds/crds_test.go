package crds

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestPackedAreTheModules compares the packed definitions with the files of the
// KubeRay module that go.mod requires. Run "go generate" when it fails.
func TestPackedAreTheModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatalf("finding the module of KubeRay: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config/crd/bases/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the definitions of the module: %v, %d files", err, len(files))
	}
	packed, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) != len(files) {
		t.Errorf("%d definitions are packed, the module has %d", len(packed), len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := yaml.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		name := want["metadata"].(map[string]any)["name"].(string)
		if err := json.Unmarshal(packed[name], &got); err != nil {
			t.Errorf("packed definition %q: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("packed definition %q differs from %s", name, file)
		}
	}
}

// TestStoredAreEstablished reads the stored form as the API server does.
func TestStoredAreEstablished(t *testing.T) {
	stored, err := Stored(time.Unix(1000, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	value, ok := stored["/registry/apiextensions.k8s.io/customresourcedefinitions/rayclusters.ray.io"]
	if !ok {
		t.Fatalf("rayclusters.ray.io is not among %d definitions", len(stored))
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(value, &crd); err != nil {
		t.Fatal(err)
	}
	if crd.UID == "" || crd.Generation != 1 || crd.CreationTimestamp.Unix() != 1000 {
		t.Errorf("metadata is %+v", crd.ObjectMeta)
	}
	if crd.Status.AcceptedNames.Kind != "RayCluster" || !reflect.DeepEqual(crd.Status.StoredVersions, []string{"v1"}) {
		t.Errorf("status is %+v", crd.Status)
	}
	for _, c := range crd.Status.Conditions {
		if c.Status != apiextensionsv1.ConditionTrue {
			t.Errorf("condition %s is %s", c.Type, c.Status)
		}
	}
}
