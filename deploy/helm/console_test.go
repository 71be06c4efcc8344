package helm_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// TestConsole: the console listens with its certificate, asks the HTTP API of the release, and
// has neither NATS nor a token of Kubernetes. It is off by default.
func TestConsole(t *testing.T) {
	t.Parallel()
	const console = namespace + "/" + release + "-console"
	for key := range render(t, modes()["http"]) {
		if strings.Contains(key, console) {
			t.Errorf("without having been enabled there is %s", key)
		}
	}
	objects := render(t, modes()["console"])
	deployment := objects["Deployment "+console]
	container := containerOf(t, deployment)
	var mounts []string
	for _, mount := range container["volumeMounts"].([]any) {
		mounts = append(mounts, mount.(map[string]any)["mountPath"].(string))
	}
	if want := []string{"/etc/muster/console-tls", "/etc/muster/server-ca"}; !slices.Equal(mounts, want) {
		t.Errorf("the console has the mounts %v, want %v", mounts, want)
	}
	for _, want := range []string{
		"--address=0.0.0.0:8443", "--certificate=/etc/muster/console-tls/tls.crt", "--key=/etc/muster/console-tls/tls.key",
		"--server=https://" + release + "-http." + namespace + ".svc", "--server-ca=/etc/muster/server-ca/ca.crt", "--actions=true", "--rack-label=topology.example.org/rack",
		"--dashboard-url=https://ray.{cluster}.example.org/{name}", "--logs-url=https://logs.example.org/explore?q=%7Bid%3D{workload}%7D&x=y#z",
	} {
		t.Run(want, func(t *testing.T) {
			if !slices.Contains(container["args"].([]any), any(want)) {
				t.Errorf("the console lacks %s: %v", want, container["args"])
			}
			_, file, _ := strings.Cut(want, "=")
			if strings.HasPrefix(file, "/etc/") && !slices.Contains(mounts, filepath.Dir(file)) {
				t.Errorf("nothing is mounted for %s: %v", want, mounts)
			}
		})
	}
	if text := fmt.Sprint(container["args"], container["env"]); strings.Contains(text, "nats") || strings.Contains(text, "NATS") {
		t.Errorf("the console has settings of NATS: %s", text)
	}
	if token, _, _ := unstructured.NestedBool(deployment.Object, "spec", "template", "spec", "automountServiceAccountToken"); token {
		t.Error("the console has a token of Kubernetes")
	}
	for key, object := range objects {
		if kind := object.GetKind(); strings.HasSuffix(kind, "Binding") && strings.Contains(fmt.Sprint(object.Object["subjects"]), release+"-console") {
			t.Errorf("%s gives rights to the console", key)
		}
	}
	ports, _, _ := unstructured.NestedSlice(objects["Service "+console].Object, "spec", "ports")
	if fmt.Sprint(ports) != "[map[name:https port:443 targetPort:8443]]" {
		t.Errorf("the Service has the ports %v", ports)
	}
}

// TestWhatTheConsoleReaches: by the NetworkPolicies the console reaches the HTTP API, although
// that takes connections from elsewhere only, and neither NATS nor anything of tenants.
func TestWhatTheConsoleReaches(t *testing.T) {
	t.Parallel()
	values := modes()["console"]
	values["trial"] = map[string]any{"enabled": true}
	n := networkOf(t, render(t, values))
	console := n.pods["console"]
	for name, c := range map[string]struct {
		to   pod
		port int32
		want bool
	}{
		"the HTTP API":           {n.pods["intake"], 8443, true},
		"intake's health":        {n.pods["intake"], 8080, false},
		"NATS":                   {n.pods["nats"], 4222, false},
		"Postgres":               {n.pods["postgres"], 5432, false},
		"queue-manager":          {n.pods["queue-manager"], 8443, false},
		"a pod of a tenant":      {pod{"team-a", labels.Set{"app": "x"}}, 8443, false},
		"the API server's ports": {pod{"kube-system", nil}, 6443, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := n.reaches(t, console, c.to, c.port); got != c.want {
				t.Errorf("the console reaches it: %v, want %v", got, c.want)
			}
		})
	}
	if n.reaches(t, pod{namespace, labels.Set{"app": "neighbour"}}, n.pods["intake"], 8443) || n.reaches(t, pod{"team-a", nil}, console, 8443) {
		t.Error("others reach the HTTP API or the console, which take connections of some addresses only")
	}
}

// TestOIDC: intake and the console have the provider of the values, which they reach, and the
// console has the secret of its client.
func TestOIDC(t *testing.T) {
	t.Parallel()
	values := modes()["console"]
	values["http"].(map[string]any)["oidc"] = map[string]any{"issuer": "https://login.example.org", "clientID": "gangs", "claim": "email"}
	values["console"].(map[string]any)["oidc"] = map[string]any{"url": "https://muster.example.org", "secret": "client", "scopes": []any{"email", "profile"}}
	objects := render(t, values)
	for service, arguments := range map[string][]string{
		"intake":  {"--http-oidc-issuer=https://login.example.org", "--http-oidc-client-id=gangs", "--http-oidc-claim=email", "--http-oidc-prefix=oidc."},
		"console": {"--oidc-issuer=https://login.example.org", "--oidc-client-id=gangs", "--oidc-url=https://muster.example.org", "--oidc-scopes=email,profile", "--oidc-client-secret=/etc/muster/oidc/client-secret"},
	} {
		t.Run(service, func(t *testing.T) {
			container := containerOf(t, objects["Deployment "+namespace+"/"+release+"-"+service])
			for _, argument := range arguments {
				if !slices.Contains(container["args"].([]any), any(argument)) {
					t.Errorf("%s lacks %s: %v", service, argument, container["args"])
				}
			}
			n := networkOf(t, objects)
			if provider := (pod{"elsewhere", nil}); !n.reaches(t, n.pods[service], provider, 443) || n.reaches(t, n.pods[service], provider, 8443) {
				t.Errorf("%s does not reach the provider, or more than that", service)
			}
		})
	}
	if text := fmt.Sprint(objects["Deployment "+namespace+"/"+release+"-console"].Object); !strings.Contains(text, "map[secretName:client]") {
		t.Errorf("the console has no secret of its client: %s", text)
	}
}
