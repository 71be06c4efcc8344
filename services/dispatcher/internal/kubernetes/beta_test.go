package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
)

const betaRequests = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/n/provisioningrequests"

// betaServer is an API server as far as it concerns ProvisioningRequests: it serves v1beta1 alone,
// and keeps the last one that is made.
func betaServer(t *testing.T) *Client {
	t.Helper()
	var stored string
	fixed := map[string]string{
		"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "autoscaling.x-k8s.io",
			"versions": [{"groupVersion": "autoscaling.x-k8s.io/v1beta1", "version": "v1beta1"}],
			"preferredVersion": {"groupVersion": "autoscaling.x-k8s.io/v1beta1", "version": "v1beta1"}}]}`,
		"/apis/autoscaling.x-k8s.io/v1beta1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "autoscaling.x-k8s.io/v1beta1",
			"resources": [{"name": "provisioningrequests", "singularName": "provisioningrequest", "namespaced": true, "kind": "ProvisioningRequest", "verbs": ["get", "list", "create"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := fixed[r.URL.Path]
		switch {
		case known:
		case r.Method == http.MethodPost && r.URL.Path == betaRequests:
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("read a request: %v", err)
			}
			stored, answer = string(body), string(body)
		case r.URL.Path == betaRequests && stored != "":
			answer = fmt.Sprintf(`{"kind": "ProvisioningRequestList", "apiVersion": "autoscaling.x-k8s.io/v1beta1", "metadata": {}, "items": [%s]}`, stored)
		case r.URL.Path == betaRequests+"/one" && stored != "":
			answer = stored
		default:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		if _, err := io.WriteString(w, answer); err != nil {
			t.Errorf("answer %s: %v", r.URL.Path, err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := connect(kubeconfig, "c", func(next http.RoundTripper) http.RoundTripper { return next }, newLimiter(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Of an API server that serves v1beta1 alone, v1 is an unknown kind, so that the caller takes
// v1beta1; and that is watched.
func TestRequestsOfAnAPIServerThatServesV1beta1(t *testing.T) {
	t.Parallel()
	client := betaServer(t)
	id := func(version string) bundle.Identity {
		return bundle.Identity{APIVersion: "autoscaling.x-k8s.io/" + version, Kind: "ProvisioningRequest", Namespace: "n", Name: "one"}
	}
	resource, served := client.requestResource()
	if !served || resource.Version != "v1beta1" || resource.Resource != "provisioningrequests" {
		t.Errorf("requests are %v, served: %t; want those of v1beta1", resource, served)
	}
	manifest := func(version string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"apiVersion": "autoscaling.x-k8s.io/%s", "kind": "ProvisioningRequest", "metadata": {"namespace": "n", "name": "one", "uid": "u", "labels": {%q: "w", %q: "c"}}}`, version, kube.WorkloadLabel, kube.ClusterLabel))
	}
	if _, err := client.CreateItem(t.Context(), id("v1"), manifest("v1")); !IsUnknownKind(err) {
		t.Errorf("creating one of v1: %v, want an unknown kind", err)
	}
	if _, err := client.Labelled(t.Context(), id("v1").APIVersion, "ProvisioningRequest", "n", "w"); !IsUnknownKind(err) {
		t.Errorf("listing those of v1: %v, want an unknown kind", err)
	}
	if found, err := client.GetItem(t.Context(), id("v1")); found != nil || err != nil {
		t.Errorf("reading one of v1: %+v, %v; want none", found, err)
	}
	if uid, err := client.CreateItem(t.Context(), id("v1beta1"), manifest("v1beta1")); err != nil || uid != "u" {
		t.Fatalf("creating one of v1beta1: %q, %v", uid, err)
	}
	found, err := client.GetItem(t.Context(), id("v1beta1"))
	if err != nil || found == nil || found.Workload != "w" {
		t.Errorf("reading it: %+v, %v", found, err)
	}
	all, err := client.Labelled(t.Context(), id("v1beta1").APIVersion, "ProvisioningRequest", "n", "w")
	if err != nil || len(all) != 1 || all[0].Name != "one" {
		t.Errorf("listing it: %+v, %v", all, err)
	}
}
