package objectpolicy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/objectpolicy"
	"muster.dev/muster/pkg/spec/workload"
)

func object(t *testing.T, manifest string) json.RawMessage {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestCheckObject(t *testing.T) {
	t.Parallel()
	kinds := func(kinds ...string) workload.ObjectPolicy { return workload.ObjectPolicy{Kinds: kinds} }
	const meta = "metadata: {name: a}\n"
	const secret, service = "apiVersion: v1\nkind: Secret\n" + meta, "apiVersion: v1\nkind: Service\n" + meta
	const network = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n" + meta
	const cluster = "apiVersion: ray.io/v1\nkind: RayCluster\n" + meta
	for _, c := range []struct {
		name     string
		policy   workload.ObjectPolicy
		manifest string
		want     string // in the message; empty for allowed
	}{
		{"config map", kinds(), "apiVersion: v1\nkind: ConfigMap\n" + meta, ""},
		{"job", kinds(), "apiVersion: batch/v1\nkind: Job\n" + meta, ""},
		{"job of another group", kinds(), "apiVersion: example.com/v1\nkind: Job\n" + meta, `kind: is "Job.example.com"; use another kind, or have it listed`},
		{"kind that is not listed", kinds("Job.batch"), "apiVersion: v1\nkind: ConfigMap\n" + meta, `kind: is "ConfigMap"`},
		{"network policy", kinds(), network, `kind: is "NetworkPolicy.networking.k8s.io"`},
		{"listed network policy", kinds("default", "NetworkPolicy.networking.k8s.io"), network, ""},
		{"ingress", kinds(), "apiVersion: networking.k8s.io/v1\nkind: Ingress\n" + meta, `is "Ingress.networking.k8s.io"`},
		{"lease", kinds(), "apiVersion: coordination.k8s.io/v1\nkind: Lease\n" + meta, `is "Lease.coordination.k8s.io"`},
		{"role", kinds("*"), "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n" + meta, "which is created for no queue"},
		{"listed role binding", kinds("RoleBinding.rbac.authorization.k8s.io"), "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n" + meta, "which is created for no queue"},
		{"service account", kinds("*", "ServiceAccount"), "apiVersion: v1\nkind: ServiceAccount\n" + meta, "which is created for no queue"},
		{"list", kinds("*"), "apiVersion: v1\nkind: SecretList\n" + meta, "which is created for no queue"},
		{"webhook", kinds("*"), "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n" + meta, "which is created for no queue"},
		{"no kind", kinds(), meta, `kind: is ""`},
		{"name that is a path", kinds(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../x}\n", `metadata.name: "../../x" may not contain '/'`},
		{"name that goes up", kinds(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ..}\n", `may not be '..'`},
		{"escaped name", kinds(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%2fb}\n", `may not contain '%'`},

		{"secret", kinds(), secret, ""},
		{"opaque secret", kinds(), secret + "type: Opaque\n", ""},
		{"key", kinds(), secret + "type: kubernetes.io/tls\n", ""},
		{"token secret", kinds(), secret + "type: kubernetes.io/service-account-token\n", "Kubernetes gives rights for it"},
		{"bootstrap token", kinds(), secret + "type: bootstrap.kubernetes.io/token\n", "Kubernetes gives rights for it"},
		{"other secret", kinds(), secret + "type: helm.sh/release.v1\n", `type: is "helm.sh/release.v1"`},

		{"service", kinds(), service + "spec: {clusterIP: None, selector: {a: b}}\n", ""},
		{"external addresses", kinds(), service + "spec: {externalIPs: [10.0.0.1]}\n", "spec.externalIPs: is set"},
		{"allowed external addresses", workload.ObjectPolicy{ExternalIPs: true}, service + "spec: {externalIPs: [10.0.0.1]}\n", ""},
		{"load balancer", kinds(), service + "spec: {type: LoadBalancer}\n", `service of type "LoadBalancer"`},
		{"port of nodes", kinds(), service + "spec: {type: NodePort}\n", `service of type "NodePort"`},
		{"allowed port of nodes", workload.ObjectPolicy{ServiceTypes: []string{"NodePort"}}, service + "spec: {type: NodePort}\n", ""},
		{"external name", kinds(), service + "spec: {type: ExternalName, externalName: a.b}\n", `service of type "ExternalName"`},
		{"type that is no text", kinds(), service + "spec: {type: [NodePort]}\n", "spec.type: is no text"},

		{"service of a head", kinds(), cluster + "spec: {headGroupSpec: {serviceType: LoadBalancer}}\n", `spec.headGroupSpec.serviceType: makes a service of type "LoadBalancer"`},
		{"own service of a head", kinds(), cluster + "spec: {headGroupSpec: {headService: {spec: {type: NodePort}}}}\n", "spec.headGroupSpec.headService.spec.type"},
		{"addresses of a head", kinds(), cluster + "spec: {headGroupSpec: {headService: {spec: {externalIPs: [10.0.0.1]}}}}\n", "headService.spec.externalIPs: is set"},
		{"service of serving", kinds(), "apiVersion: ray.io/v1\nkind: RayService\n" + meta + "spec: {serveService: {spec: {type: NodePort}}}\n", "spec.serveService.spec.type"},
		{"ingress of a head", kinds(), cluster + "spec: {headGroupSpec: {enableIngress: true}}\n", "spec.headGroupSpec.enableIngress: is true"},
		{"allowed ingress of a head", kinds("default", "Ingress.networking.k8s.io"), cluster + "spec: {headGroupSpec: {enableIngress: true}}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			check(t, objectpolicy.CheckObject(c.policy, object(t, c.manifest)), c.want)
			wrapped, err := bundle.Bundle{Items: []bundle.Item{{Object: object(t, "apiVersion: v1\nkind: Pod\n"+meta)}, {Object: object(t, c.manifest)}}}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if len(c.policy.Kinds) == 0 { // else the pod may not be listed
				check(t, objectpolicy.Check(c.policy, wrapped), c.want)
			}
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%v, want it allowed", err)
	case want != "" && (!errors.Is(err, objectpolicy.ErrDenied) || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want a denial with %q", err, want)
	}
}

// A Ray object that is submitted as it is needs no listed kind, but its services are
// checked like a wrapped one's.
func TestCheckOfARayObject(t *testing.T) {
	t.Parallel()
	policy := workload.ObjectPolicy{Kinds: []string{"Job.batch"}}
	check(t, objectpolicy.Check(policy, object(t, "apiVersion: ray.io/v1\nkind: RayCluster\nspec: {}\n")), "")
	check(t, objectpolicy.Check(policy, nil), "")
	check(t, objectpolicy.Check(policy, object(t, "apiVersion: ray.io/v1\nkind: RayCluster\nspec: {headGroupSpec: {serviceType: NodePort}}\n")), "NodePort")
	check(t, objectpolicy.Check(policy, json.RawMessage("[]")), "cannot be read")
}

// FuzzCheck: whatever is around it, a token secret in a bundle is found, and no
// manifest makes the check fail otherwise.
func FuzzCheck(f *testing.F) {
	f.Add(`{"kind": "Bundle", "apiVersion": "muster.dev/v1", "items": [{"object": {"kind": "Pod", "apiVersion": "v1"}}]}`)
	f.Fuzz(func(t *testing.T, around string) {
		if err := objectpolicy.Check(workload.ObjectPolicy{}, json.RawMessage(around)); err != nil && !errors.Is(err, objectpolicy.ErrDenied) {
			t.Fatalf("error %v is no denial", err)
		}
		wrapped, err := bundle.Decode(json.RawMessage(around))
		if err != nil {
			return
		}
		wrapped.Items = append(wrapped.Items, bundle.Item{Object: json.RawMessage(`{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token"}`)})
		encoded, err := wrapped.Encode()
		if err != nil {
			return // an item that is no JSON
		}
		if err := objectpolicy.Check(workload.ObjectPolicy{Kinds: []string{"*"}}, encoded); !errors.Is(err, objectpolicy.ErrDenied) {
			t.Fatalf("a token secret is allowed in %s: %v", encoded, err)
		}
	})
}
