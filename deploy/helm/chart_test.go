package helm_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"muster.dev/muster/deploy/helm"
)

var update = flag.Bool("update", false, "rewrite the generated files of the chart")

const (
	release   = "gangs"
	namespace = "muster-system"
)

// modes are the values under which the chart is tried.
func modes() map[string]map[string]any {
	on := func() map[string]any { return map[string]any{"enabled": true} } // Helm writes into what it is given
	return map[string]map[string]any{
		"defaults": {},
		"member":   {"mode": "member", "cluster": "east", "namespaces": []any{"team-a", "team-b"}},
		"trial":    {"trial": on()},
		"controller": {
			"kubernetesController": map[string]any{"enabled": true, "defaultQueue": "a", "kueueLabel": false},
			"queues":               []any{map[string]any{"name": "a", "namespaces": []any{"team-b", "team-a"}}},
			"nats":                 map[string]any{"url": "tls://nats:4222", "tlsSecret": "nats-client"}, "database": map[string]any{"tlsSecret": "postgres-ca"},
			"kuberay": map[string]any{"version": "v1.6.1"}, "tracing": map[string]any{"endpoint": "http://collector:4318", "ratio": 0.1},
		},
		"webhooks": {
			"kubernetesController": map[string]any{"enabled": true, "admission": "webhooks"},
			"protectionPolicies":   map[string]any{"operators": []any{"system:serviceaccount:ray:operator"}},
			"queues":               []any{map[string]any{"name": "a", "namespaces": []any{"team-b", "team-a"}}},
		},
		"http": {
			"http": map[string]any{
				"enabled": true, "tlsSecret": "api", "clientCA": "people", "operators": []any{"olga", "otto"},
				"tokens": []any{map[string]any{"name": "alice", "sha256": strings.Repeat("2b", 32)}},
			},
			"networkPolicy": map[string]any{"httpFrom": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}}},
		},
		"console": {
			"http":    map[string]any{"enabled": true, "tlsSecret": "api", "clientCA": "people"},
			"console": map[string]any{"enabled": true, "tlsSecret": "pages", "serverCA": "authority", "actions": true, "rackLabel": "topology.example.org/rack", "dashboardURL": "https://ray.{cluster}.example.org/{name}", "logsURL": "https://logs.example.org/explore?q=%7Bid%3D{workload}%7D&x=y#z"},
			"networkPolicy": map[string]any{
				"httpFrom":    []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}},
				"consoleFrom": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.1.0.0/16"}}},
			},
		},
		"everything": {
			"serviceMonitor": on(), "prometheusRule": on(), "dashboard": on(),
			"image":        map[string]any{"repository": "registry.example/muster", "tag": "v1", "pullSecrets": []any{"pull"}},
			"nodeSelector": "pool=gpu", "ownNodeSelector": map[string]any{"pool": "system"},
			"podAnnotations": map[string]any{"a": "b"}, "podLabels": map[string]any{"c": "d"},
			"tolerations": []any{map[string]any{"operator": "Exists"}},
			"affinity":    map[string]any{"nodeAffinity": map[string]any{}},
			"networkPolicy": map[string]any{"metricsFrom": []any{map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}},
			}}},
			"queues": []any{
				map[string]any{"name": "a", "namespaces": []any{"team-a", "team-b"}},
				map[string]any{"name": "b", "namespaces": []any{"team-b"}, "strategy": "StrictFIFO"},
			},
		},
	}
}

// render returns the objects of the chart by kind, namespace and name.
func render(t *testing.T, values map[string]any) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := rendered(values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func rendered(values map[string]any) (map[string]*unstructured.Unstructured, error) {
	chart, err := loader.Load("muster")
	if err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, content := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		if err := decode(objects, content); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, content)
		}
	}
	return objects, nil
}

func decode(objects map[string]*unstructured.Unstructured, content string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(content)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		key := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		if objects[key] != nil {
			return fmt.Errorf("%s is there twice", key)
		}
		objects[key] = object
	}
}

// The permission of the cluster is that of the values, and a second dispatcher obeys it when the
// first does not.
func TestThePermissionOfTheDispatcher(t *testing.T) {
	t.Parallel()
	objects := render(t, map[string]any{"dispatcher": map[string]any{"permission": "5m"}})
	deployment := objects["Deployment "+namespace+"/"+release+"-dispatcher"]
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || !strings.Contains(fmt.Sprint(containers), "--permission=5m") {
		t.Errorf("the containers are %v, %v", containers, err)
	}
	if replicas, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "replicas"); fmt.Sprint(replicas) != "2" {
		t.Errorf("%v replicas, want 2", replicas)
	}
}

// TestMadeFiles: the rights in the chart are those of the rest of the project.
func TestMadeFiles(t *testing.T) {
	t.Parallel()
	made, err := helm.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string][]byte{}
	for name, content := range made {
		wanted["crds/"+name] = content
	}
	for name, content := range map[string]func() ([]byte, error){
		"rights.yaml": helm.Rights, "nats-users.yaml": helm.Users, "policies.yaml": helm.Policies, "webhooks.yaml": helm.Webhooks,
	} {
		if wanted["files/"+name], err = content(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range wanted {
		path := filepath.Join("muster", filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date; rewrite it with: go test ./deploy/helm -run MadeFiles -update", path)
		}
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range modes() {
		for _, message := range lint.RunAll("muster", values, namespace).Messages {
			if message.Severity > 1 { // more than advice, such as to have an icon
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

// TestBadValues: the schema refuses what the services would refuse, or worse,
// take.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values map[string]any
		want   string
	}{
		"unknown value":               {map[string]any{"quees": []any{}}, "quees"},
		"unknown mode":                {map[string]any{"mode": "both"}, "mode"},
		"bad cluster":                 {map[string]any{"cluster": "East 1"}, "cluster"},
		"queue without a name":        {map[string]any{"queues": []any{map[string]any{"namespaces": []any{"a"}}}}, "name"},
		"queue without a place":       {map[string]any{"queues": []any{map[string]any{"name": "a", "namespaces": []any{}}}}, "namespaces"},
		"no queue":                    {map[string]any{"queues": []any{}}, "queues"},
		"password in a URL":           {map[string]any{"nats": map[string]any{"url": "nats://me:secret@nats:4222"}}, "url"},
		"lines in a node selector":    {map[string]any{"nodeSelector": "a=b\"\n- --evil"}, "nodeSelector"},
		"quotes in a node selector":   {map[string]any{"nodeSelector": `a="b`}, "nodeSelector"},
		"lines in an image":           {map[string]any{"image": map[string]any{"repository": "a\n          securityContext: {privileged: true}"}}, "repository"},
		"lines in a tag":              {map[string]any{"image": map[string]any{"tag": "1\nx: y"}}, "tag"},
		"a pull secret of YAML":       {map[string]any{"image": map[string]any{"pullSecrets": []any{"a}, {name: b"}}}, "pullSecrets"},
		"lines in an URL":             {map[string]any{"nats": map[string]any{"url": "nats://a:4222\n- --pprof-address=0.0.0.0:1"}}, "url"},
		"a secret that is none":       {map[string]any{"nats": map[string]any{"credentialsSecret": "a\n  optional: true"}}, "credentialsSecret"},
		"a TLS secret that is none":   {map[string]any{"database": map[string]any{"tlsSecret": "../x"}}, "tlsSecret"},
		"lines in the trial's image":  {map[string]any{"trial": map[string]any{"enabled": true, "natsImage": "nats\nx: y"}}, "natsImage"},
		"storage of YAML":             {map[string]any{"trial": map[string]any{"enabled": true, "storage": "5Gi}}, x: {y: {"}}, "storage"},
		"lines in an annotation":      {map[string]any{"podAnnotations": map[string]any{"a": "b\nc: d"}}, "podAnnotations"},
		"lines in a label's name":     {map[string]any{"podLabels": map[string]any{"a: b\nc": "d"}}, "propertyName"},
		"lines in an endpoint":        {map[string]any{"tracing": map[string]any{"endpoint": "http://a\n- --x"}}, "endpoint"},
		"a huge number of replicas":   {map[string]any{"intake": map[string]any{"replicas": 1000000000, "resources": map[string]any{}}}, "replicas"},
		"a huge number of workers":    {map[string]any{"dispatcher": map[string]any{"replicas": 1, "workers": 1e18, "resources": map[string]any{}}}, "workers"},
		"a port that is none":         {map[string]any{"networkPolicy": map[string]any{"natsPort": 99999}}, "natsPort"},
		"no amount":                   {map[string]any{"intake": map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "1\n  x: y"}}}}, "cpu"},
		"resources of another kind":   {map[string]any{"intake": map[string]any{"resources": map[string]any{"securityContext": map[string]any{}}}}, "securityContext"},
		"a namespace of YAML":         {map[string]any{"namespaces": []any{"a, b: c"}}, "namespaces"},
		"a queue's namespace of YAML": {map[string]any{"queues": []any{map[string]any{"name": "a", "namespaces": []any{"a\n  x: y"}}}}, "namespaces"},
		"HTTP without a certificate":  {map[string]any{"http": map[string]any{"enabled": true, "clientCA": "people"}}, "tlsSecret"},
		"HTTP without callers":        {map[string]any{"http": map[string]any{"enabled": true, "tlsSecret": "api"}}, "tokens"},
		"a token and no hash":         {map[string]any{"http": map[string]any{"tokens": []any{map[string]any{"name": "a", "sha256": "secret"}}}}, "sha256"},
		"operators in one word":       {map[string]any{"http": map[string]any{"operators": []any{"olga,bob"}}}, "operators"},
		"console without HTTP":        {map[string]any{"console": map[string]any{"enabled": true, "tlsSecret": "pages"}}, "http"},
		"console without certificate": {map[string]any{"http": map[string]any{"enabled": true, "tlsSecret": "api", "clientCA": "people"}, "console": map[string]any{"enabled": true}}, "tlsSecret"},
		"two consoles":                {map[string]any{"console": map[string]any{"replicas": 2}}, "replicas"},
		"lines in a rack label":       {map[string]any{"console": map[string]any{"rackLabel": "a\n- --x"}}, "rackLabel"},
		"a script as a dashboard":     {map[string]any{"console": map[string]any{"dashboardURL": "javascript:x"}}, "dashboardURL"},
		"a variable in a logs URL":    {map[string]any{"console": map[string]any{"logsURL": "https://$(TOKEN).example.org/"}}, "logsURL"},
		"permission without unit":     {map[string]any{"dispatcher": map[string]any{"permission": "60"}}, "permission"},
		"grace without unit":          {map[string]any{"queueManager": map[string]any{"nodeGrace": "60"}}, "nodeGrace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rendered(test.values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: the error is %v, want one that names %q", name, err, test.want)
			}
		})
	}
}

// TestServices: each mode has its services, contained as they should be.
func TestServices(t *testing.T) {
	t.Parallel()
	all := []string{"capacity-watcher", "dispatcher", "intake", "queue-manager"}
	for name, want := range map[string][]string{"defaults": all, "trial": all, "everything": all, "controller": all, "webhooks": all, "http": all, "member": {"capacity-watcher", "dispatcher"}, "console": {"capacity-watcher", "console", "dispatcher", "intake", "queue-manager"}} {
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
	if api := service == "capacity-watcher" || service == "dispatcher" || service == "intake" && (mode == "controller" || mode == "webhooks"); token != api {
		t.Errorf("%s: %s has a token of the API server: %t", mode, deployment.GetName(), token)
	}
	for _, argument := range container["args"].([]any) {
		if text := argument.(string); strings.Contains(text, "@") || strings.Contains(strings.ToLower(text), "password") {
			t.Errorf("%s: %s has a secret among its arguments: %s", mode, deployment.GetName(), text)
		}
	}
}

// The trial's servers are reached by the services that use them, and reach nothing.
func TestTheTrialsPartsAreReachedByTheirServicesOnly(t *testing.T) {
	t.Parallel()
	objects := render(t, modes()["trial"])
	for part, want := range map[string][]string{
		"nats": {"capacity-watcher", "dispatcher", "intake", "queue-manager"}, "postgres": {"migrate", "queue-manager"},
	} {
		t.Run(part, func(t *testing.T) {
			policy := objects["NetworkPolicy "+namespace+"/"+release+"-"+part]
			if policy == nil {
				t.Errorf("%s has no NetworkPolicy", part)
				return
			}
			ingress, _, _ := unstructured.NestedSlice(policy.Object, "spec", "ingress")
			if len(ingress) != 1 {
				t.Fatalf("%s: ingress is %v", part, ingress)
			}
			var from []string
			for _, peer := range ingress[0].(map[string]any)["from"].([]any) {
				name, _, _ := unstructured.NestedString(peer.(map[string]any), "podSelector", "matchLabels", "app.kubernetes.io/component")
				from = append(from, name)
			}
			slices.Sort(from)
			if !slices.Equal(from, want) {
				t.Errorf("%s is reached by %v, want %v", part, from, want)
			}
			types, _, _ := unstructured.NestedStringSlice(policy.Object, "spec", "policyTypes")
			if egress, _, _ := unstructured.NestedSlice(policy.Object, "spec", "egress"); len(egress) != 0 || !slices.Contains(types, "Egress") {
				t.Errorf("%s may reach %v", part, egress)
			}
		})
	}
}

// A service may read and renew the Lease of its own cluster and no other, and make Leases in the
// namespace of the release.
func TestLeasesAreBoundByName(t *testing.T) {
	t.Parallel()
	objects := render(t, modes()["member"])
	for _, service := range []string{"capacity-watcher", "dispatcher"} {
		t.Run(service, func(t *testing.T) {
			if objects["Lease "+namespace+"/"+release+"-"+service+"-east"] == nil {
				t.Errorf("%s has no Lease", service)
			}
			role := objects["Role "+namespace+"/"+release+"-"+service+"-lease"]
			if role == nil {
				t.Fatalf("%s has no role for its Lease", service)
			}
			rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
			for _, rule := range rules {
				names, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
				verbs, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "verbs")
				bound := slices.Equal(names, []string{release + "-" + service + "-east"}) && slices.Equal(verbs, []string{"get", "update", "watch"})
				if makes := len(names) == 0 && slices.Equal(verbs, []string{"create"}); !bound && !makes {
					t.Errorf("%s may %v Leases %v", service, verbs, names)
				}
			}
			if len(rules) != 2 {
				t.Errorf("%s has %d rules for Leases, want one to hold its own and one to make it", service, len(rules))
			}
			if lease := "--lease=" + namespace + "/" + release + "-" + service + "-east"; !slices.Contains(
				containerOf(t, objects["Deployment "+namespace+"/"+release+"-"+service])["args"].([]any), any(lease)) {
				t.Errorf("%s is not told %s", service, lease)
			}
		})
	}
}
