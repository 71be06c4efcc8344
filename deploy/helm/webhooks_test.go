package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWebhooks: in the place of policies the chart has webhooks that reach its own intake,
// and nothing more of intake's rights than names.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	objects := render(t, modes()["webhooks"])
	names := map[string][]string{}
	for key, object := range objects {
		if strings.Contains(key, "AdmissionPolicy") {
			t.Errorf("beside the webhooks there is %s", key)
		}
		if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			continue
		}
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, item := range webhooks {
			webhook := item.(map[string]any)
			names[object.GetKind()] = append(names[object.GetKind()], webhook["name"].(string))
			service, _, _ := unstructured.NestedStringMap(webhook, "clientConfig", "service")
			if service["namespace"] != namespace || service["name"] != release+"-intake-webhooks" || !strings.HasPrefix(service["path"], "/policies/") {
				t.Errorf("%s is at %v", webhook["name"], service)
			}
			text := fmt.Sprint(webhook)
			for _, left := range []string{"QUEUE_LABELS", "OPERATOR_ACCOUNTS", "QUEUE_NAMESPACE", "muster-system:muster-dispatcher"} {
				if strings.Contains(text, left) {
					t.Errorf("%s has still %s", webhook["name"], left)
				}
			}
			if strings.HasSuffix(webhook["name"].(string), ".others.policy.muster.dev") != (webhook["failurePolicy"] == "Ignore") {
				t.Errorf("%s has the failurePolicy %v", webhook["name"], webhook["failurePolicy"])
			}
		}
	}
	if len(names["MutatingWebhookConfiguration"]) != 7 || len(names["ValidatingWebhookConfiguration"]) != 12 {
		t.Errorf("webhooks are %v", names)
	}
	arguments := containerOf(t, objects["Deployment "+namespace+"/"+release+"-intake"])["args"].([]any)
	for _, want := range []string{
		"--webhook-address=0.0.0.0:9443", "--webhook-secret=" + namespace + "/" + release + "-intake-webhooks",
		"--webhook-configuration=" + namespace + "-" + release + "-webhooks", "--webhook-operators=system:serviceaccount:ray:operator",
	} {
		if !slices.Contains(arguments, any(want)) {
			t.Errorf("intake lacks %s: %v", want, arguments)
		}
	}
	for _, key := range []string{"Role " + namespace + "/" + release + "-intake-webhooks", "ClusterRole /" + namespace + "-" + release + "-webhooks"} {
		t.Run(key, func(t *testing.T) {
			rules, _, _ := unstructured.NestedSlice(objects[key].Object, "rules")
			for _, rule := range rules {
				bound, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
				verbs, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "verbs")
				if len(bound) != 1 || !slices.Equal(verbs, []string{"get", "update"}) {
					t.Errorf("%s may %v %v", key, verbs, bound)
				}
			}
		})
	}
}

// TestAdmissionByVersion: without a choice the version of Kubernetes decides.
func TestAdmissionByVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"v1.30.4": "MutatingWebhookConfiguration", "v1.35.0-gke.1": "MutatingWebhookConfiguration", "v1.36.3": "MutatingAdmissionPolicy"} {
		t.Run(version, func(t *testing.T) {
			chart, err := loader.Load("muster")
			if err != nil {
				t.Fatal(err)
			}
			capabilities := common.DefaultCapabilities.Copy()
			capabilities.KubeVersion = common.KubeVersion{Version: version}
			values := map[string]any{"kubernetesController": map[string]any{"enabled": true}}
			all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
			if err != nil {
				t.Fatal(err)
			}
			files, err := engine.Render(chart, all)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, content := range files {
				text += content
			}
			for _, kind := range []string{"MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"} {
				if got := strings.Contains(text, "\nkind: "+kind+"\n"); got != (kind == want || kind == "ValidatingAdmissionPolicy") {
					t.Errorf("%s: there is a %s: %t", version, kind, got)
				}
			}
		})
	}
}
