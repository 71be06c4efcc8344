package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
)

// A cluster without the operator has KubeRay's definitions, and no process of it.
func TestWithoutKubeRay(t *testing.T) {
	i := start(t, "--name=without", "--without=kuberay")
	state, err := os.ReadFile(filepath.Join(i.Dir, "instance.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(state), `"kuberay"`) {
		t.Errorf("the operator is among the components: %s", state)
	}
	var cluster rayv1.RayCluster
	sample(t, "ray-cluster.sample.yaml", &cluster)
	cluster.Namespace = "default"
	if err := i.client.Create(t.Context(), &cluster); err != nil {
		t.Errorf("create a RayCluster: %v", err)
	}
}

func TestWithoutWhatIsNeeded(t *testing.T) {
	output, err := command(t.Context(), "up", "--name=broken", "--without=apiserver").CombinedOutput()
	if want := `--without: "apiserver" cannot be left out; want kuberay`; err == nil || !strings.Contains(string(output), want) {
		t.Errorf("ends with %v and says %q, want %q", err, output, want)
	}
}
