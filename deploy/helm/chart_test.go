package helm_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/deploy/helm"
)

var update = flag.Bool("update", false, "rewrite the generated files of the chart")

const (
	release   = "gangs"
	namespace = "muster-system"
)

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
		"a member without queues":     {map[string]any{"mode": "member", "namespaces": []any{"a"}, "kubernetesController": map[string]any{"enabled": true}}, "queues"},
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
