package integration

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// testVersion: the API server reports which Kubernetes it is, so that Helm's charts and other
// clients that ask for a version take it for what it is.
func testVersion(t *testing.T, i *instance) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	list.Env = append(list.Environ(), "GOWORK=off")
	want, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", i.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	got, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(want))
	if got.GitVersion != version || !strings.HasPrefix(version, "v"+got.Major+"."+got.Minor+".") {
		t.Errorf("the API server is %s (major %q, minor %q), want %s", got.GitVersion, got.Major, got.Minor, version)
	}
}
