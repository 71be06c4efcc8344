package helm_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHTTP: the HTTP API listens with the certificate, the callers and the operators of the
// values, and only where it is enabled.
func TestHTTP(t *testing.T) {
	t.Parallel()
	const intake = namespace + "/" + release + "-intake"
	if without := render(t, nil); without["Service "+namespace+"/"+release+"-http"] != nil || strings.Contains(fmt.Sprint(without["Deployment "+intake].Object), "--http-") {
		t.Error("the HTTP API is there without having been enabled")
	}
	objects := render(t, modes()["http"])
	container := containerOf(t, objects["Deployment "+intake])
	var mounts []string
	for _, mount := range container["volumeMounts"].([]any) {
		mounts = append(mounts, mount.(map[string]any)["mountPath"].(string))
	}
	for _, want := range []string{
		"--http-address=0.0.0.0:8443", "--http-certificate=/etc/muster/http-tls/tls.crt", "--http-key=/etc/muster/http-tls/tls.key",
		"--http-client-ca=/etc/muster/http-ca/ca.crt", "--http-tokens=/etc/muster/http/tokens.yaml", "--http-operators=olga,otto",
		"--http-connections-per-address=256",
	} {
		t.Run(want, func(t *testing.T) {
			if !slices.Contains(container["args"].([]any), any(want)) {
				t.Errorf("intake lacks %s: %v", want, container["args"])
			}
			_, file, _ := strings.Cut(want, "=")
			if strings.HasPrefix(file, "/") && !slices.Contains(mounts, filepath.Dir(file)) {
				t.Errorf("nothing is mounted for %s: %v", want, mounts)
			}
		})
	}
	tokens, _, _ := unstructured.NestedString(objects["ConfigMap "+namespace+"/"+release+"-http"].Object, "data", "tokens.yaml")
	if want := "- name: alice\n  sha256: " + strings.Repeat("2b", 32); strings.TrimSpace(tokens) != want {
		t.Errorf("tokens.yaml is %q, want %q", tokens, want)
	}
	ports, _, _ := unstructured.NestedSlice(objects["Service "+namespace+"/"+release+"-http"].Object, "spec", "ports")
	if fmt.Sprint(ports) != "[map[name:http port:443 targetPort:8443]]" {
		t.Errorf("the Service has the ports %v", ports)
	}
	ingress, _, _ := unstructured.NestedSlice(objects["NetworkPolicy "+intake].Object, "spec", "ingress")
	if text := fmt.Sprint(ingress); !strings.Contains(text, "10.0.0.0/8") || !strings.Contains(text, "8443") {
		t.Errorf("intake may be reached from %v", ingress)
	}
}
