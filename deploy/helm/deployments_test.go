package helm_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestServices: each mode has its services, contained as they should be.
func TestServices(t *testing.T) {
	t.Parallel()
	all := []string{"capacity-watcher", "dispatcher", "intake", "queue-manager"}
	for name, want := range map[string][]string{"defaults": all, "trial": all, "everything": all, "controller": all, "webhooks": all, "http": all, "member": {"capacity-watcher", "dispatcher"}, "member with kubectl": {"capacity-watcher", "dispatcher", "intake"}, "console": {"capacity-watcher", "console", "dispatcher", "intake", "queue-manager"}} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, modes()[name])
			var services []string
			for _, key := range slices.Sorted(maps.Keys(objects)) {
				object := objects[key]
				if object.GetKind() != "Deployment" {
					continue
				}
				services = append(services, strings.TrimPrefix(object.GetName(), release+"-"))
				checkContained(t, name, object)
				for _, kind := range []string{"ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"} {
					if objects[fmt.Sprintf("%s %s/%s", kind, namespace, object.GetName())] == nil {
						t.Errorf("%s: %s has no %s", name, object.GetName(), kind)
					}
				}
			}
			if !slices.Equal(services, want) {
				t.Errorf("%s: services are %v, want %v", name, services, want)
			}
		})
	}
}

// TestOneServiceMayFail: what a cluster's admissions wait for runs twice by default.
func TestOneServiceMayFail(t *testing.T) {
	t.Parallel()
	objects := render(t, nil)
	for _, service := range []string{"intake", "queue-manager", "capacity-watcher"} {
		t.Run(service, func(t *testing.T) {
			replicas, _, _ := unstructured.NestedFieldNoCopy(objects["Deployment "+namespace+"/"+release+"-"+service].Object, "spec", "replicas")
			if fmt.Sprint(replicas) != "2" {
				t.Errorf("%s has %v replicas, want 2", service, replicas)
			}
		})
	}
}

// TestSettingsReachTheServices: what the values say is among the arguments, which
// the service's own flags accept, and what files they name is mounted.
func TestSettingsReachTheServices(t *testing.T) {
	t.Parallel()
	objects := render(t, modes()["controller"])
	want := map[string][]string{
		"intake": {
			"--cluster=default", "--default-queue=a", "--kube-namespaces=team-a,team-b", "--kuberay=/etc/muster/kuberay/kuberay.yaml",
			"--nats-url=tls://nats:4222", "--nats-ca=/etc/muster/nats-tls/ca.crt", "--nats-certificate=/etc/muster/nats-tls/tls.crt",
			"--nats-key=/etc/muster/nats-tls/tls.key", "--otlp-endpoint=http://collector:4318", "--trace-ratio=0.1",
		},
		"queue-manager": {"--nats-ca=/etc/muster/nats-tls/ca.crt", "--otlp-endpoint=http://collector:4318"},
		"dispatcher":    {"--nats-ca=/etc/muster/nats-tls/ca.crt", "--cluster=default"},
	}
	for service, arguments := range want {
		t.Run(service, func(t *testing.T) {
			container := containerOf(t, objects["Deployment "+namespace+"/"+release+"-"+service])
			for _, argument := range arguments {
				if !slices.Contains(container["args"].([]any), any(argument)) {
					t.Errorf("%s lacks the argument %s: %v", service, argument, container["args"])
				}
			}
			var mounts []string
			for _, mount := range container["volumeMounts"].([]any) {
				mounts = append(mounts, mount.(map[string]any)["mountPath"].(string)+"/")
			}
			for _, argument := range container["args"].([]any) {
				_, file, _ := strings.Cut(argument.(string), "=")
				if strings.HasPrefix(file, "/etc/muster/") && !slices.ContainsFunc(mounts, func(m string) bool { return strings.HasPrefix(file, m) }) {
					t.Errorf("%s: nothing is mounted at %s: %v", service, argument, mounts)
				}
			}
		})
	}
	hold := objects["MutatingAdmissionPolicy /"+namespace+"-"+release+"-hold"]
	if hold == nil {
		t.Fatal("the Kubernetes controller has no policy that suspends objects")
	}
	text := fmt.Sprint(hold.Object)
	for part, there := range map[string]bool{
		"system:serviceaccount:" + namespace + ":" + release + "-dispatcher": true,
		"muster.dev/queue-name": true, "kueue.x-k8s.io/queue-name": false, "QUEUE_LABELS": false, "muster-system:muster-": false,
	} {
		t.Run(part, func(t *testing.T) {
			if strings.Contains(text, part) != there {
				t.Errorf("the policy that suspends objects: contains %q: %v, want %v", part, !there, there)
			}
		})
	}
	fixed := objects["ValidatingAdmissionPolicy /"+namespace+"-"+release+"-fixed-ray"]
	if fixed == nil || !strings.Contains(fmt.Sprint(fixed.Object), "system:serviceaccount:"+namespace+":"+release+"-dispatcher") || strings.Contains(fmt.Sprint(fixed.Object), "OPERATOR_ACCOUNTS") {
		t.Errorf("the policy that keeps what Muster has set on Ray objects is %v", fixed)
	}
	for key := range render(t, modes()["defaults"]) {
		if strings.Contains(key, "AdmissionPolicy") && !strings.Contains(key, "-fixed-") || strings.Contains(key, "-intake") && strings.HasPrefix(key, "ClusterRole") {
			t.Errorf("without the Kubernetes controller there is %s", key)
		}
	}
}

func containerOf(t *testing.T, deployment *unstructured.Unstructured) map[string]any {
	t.Helper()
	if deployment == nil {
		t.Fatal("there is no such deployment")
	}
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers of %s: %v, %v", deployment.GetName(), containers, err)
	}
	return containers[0].(map[string]any)
}

// checkContained checks what no values may break.
func checkContained(t *testing.T, mode string, deployment *unstructured.Unstructured) {
	t.Helper()
	container := containerOf(t, deployment)
	context, _ := container["securityContext"].(map[string]any)
	if context["readOnlyRootFilesystem"] != true || context["allowPrivilegeEscalation"] != false {
		t.Errorf("%s: %s is not contained: %v", mode, deployment.GetName(), context)
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if container[probe] == nil {
			t.Errorf("%s: %s has no %s", mode, deployment.GetName(), probe)
		}
	}
	requests, _, _ := unstructured.NestedMap(container, "resources", "requests") // absent is what is looked for
	if requests["cpu"] == nil || requests["memory"] == nil {
		t.Errorf("%s: %s requests %v", mode, deployment.GetName(), requests)
	}
	token, _, _ := unstructured.NestedBool(deployment.Object, "spec", "template", "spec", "automountServiceAccountToken")
	service := strings.TrimPrefix(deployment.GetName(), release+"-")
	if api := service == "capacity-watcher" || service == "dispatcher" || service == "intake" && (mode == "controller" || mode == "webhooks" || mode == "member with kubectl"); token != api {
		t.Errorf("%s: %s has a token of the API server: %t", mode, deployment.GetName(), token)
	}
	for _, argument := range container["args"].([]any) {
		if text := argument.(string); strings.Contains(text, "@") || strings.Contains(strings.ToLower(text), "password") {
			t.Errorf("%s: %s has a secret among its arguments: %s", mode, deployment.GetName(), text)
		}
	}
}
