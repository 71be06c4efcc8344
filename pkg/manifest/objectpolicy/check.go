// Package objectpolicy states which objects Muster creates for a queue's workloads. A
// submitter who may only submit must not get rights by what is created for it: by a
// secret that Kubernetes fills with the token of a service account, by a network
// policy that opens the namespace, by a service that takes over addresses.
//
// It is not for what pods may contain (package podpolicy), nor for the rights of the
// submitter in Kubernetes, which the API server knows. The package is pure.
package objectpolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	sigsjson "sigs.k8s.io/json"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// ErrDenied is wrapped by every error.
var ErrDenied = errors.New("not allowed")

type policy struct{ workload.ObjectPolicy }

func denied(where, what, remedy string) error {
	return fmt.Errorf("%w by the queue's object policy: %s: %s; %s", ErrDenied, where, what, remedy)
}

// Check holds what a stored manifest makes Muster create against the policy: the
// objects of a bundle, or the Ray object that it is. No manifest makes nothing.
func Check(rules workload.ObjectPolicy, manifest json.RawMessage) error {
	if len(manifest) == 0 {
		return nil
	}
	wrapped, err := bundle.Decode(manifest)
	if err != nil {
		object, err := read(manifest)
		if err != nil {
			return err
		}
		return policy{rules}.services("", object)
	}
	for i, item := range wrapped.Items {
		if err := CheckObject(rules, item.Object); err != nil {
			return fmt.Errorf("wrapped object %d: %w", i, err)
		}
	}
	return nil
}

func read(manifest json.RawMessage) (object map[string]any, err error) {
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(manifest, &object); err != nil {
		return nil, denied("manifest", "cannot be read: "+err.Error(), "write it as JSON")
	}
	return object, nil
}

// CheckObject holds one wrapped object against the policy.
func CheckObject(rules workload.ObjectPolicy, manifest json.RawMessage) error {
	p := policy{rules}
	object, err := read(manifest)
	if err != nil {
		return err
	}
	apiVersion, kindName := text(object, "apiVersion"), text(object, "kind")
	kind := kindOf(apiVersion, kindName)
	switch {
	case never(kind):
		return denied("kind", "is "+fault.Quote(kind)+", which is created for no queue", "have an administrator create it")
	case !p.allowsKind(kind):
		return denied("kind", "is "+fault.Quote(kind), "use another kind, or have it listed in the queue's objectPolicy.kinds")
	}
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"name", "generateName", "namespace"} {
		if faults := content.IsPathSegmentName(text(metadata, field)); len(faults) > 0 {
			return denied("metadata."+field, fault.Quote(text(metadata, field))+" "+strings.Join(faults, " and "), "use another name")
		}
	}
	switch kind {
	case "Secret":
		return secret(text(object, "type"))
	case "Service":
		spec, _ := object["spec"].(map[string]any)
		return p.service("spec", spec)
	}
	return p.services("", object)
}

func secret(kind string) error {
	switch {
	case neverSecret(kind):
		return denied("type", "is "+fault.Quote(kind)+": Kubernetes gives rights for it", "have an administrator create it")
	case !slices.Contains(plainSecrets(), kind):
		return denied("type", "is "+fault.Quote(kind), "use Opaque")
	}
	return nil
}

// service checks the spec of a service. Its addresses and its type decide who else's
// traffic it takes.
func (p policy) service(where string, spec map[string]any) error {
	if list, there := spec["externalIPs"]; there && list != nil && !p.ExternalIPs {
		return denied(where+".externalIPs", "is set", "remove it: it takes over others' traffic; or have the queue's objectPolicy allow externalIPs")
	}
	if name, there := spec["externalName"]; there && name != nil && name != "" {
		if err := p.serviceType(where+".externalName", "ExternalName"); err != nil {
			return err
		}
	}
	kind, isText := spec["type"].(string)
	if spec["type"] != nil && !isText {
		return denied(where+".type", "is no text", "use ClusterIP")
	}
	return p.serviceType(where+".type", kind)
}

func (p policy) serviceType(where, kind string) error {
	if kind == "" || kind == "ClusterIP" || allows(p.ServiceTypes, kind) {
		return nil
	}
	return denied(where, "makes a service of type "+fault.Quote(kind), "use ClusterIP, or have the type listed in the queue's objectPolicy.serviceTypes")
}

// services checks, wherever they are in an object, what KubeRay makes services and
// ingresses of.
func (p policy) services(where string, node any) error {
	switch n := node.(type) {
	case []any:
		for i, item := range n {
			if err := p.services(fmt.Sprintf("%s[%d]", where, i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range sorted(n) {
			at := strings.TrimPrefix(where+"."+key, ".")
			if err := p.made(at, key, n[key]); err != nil {
				return err
			}
			if err := p.services(at, n[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// made checks one field of which KubeRay makes a service or an ingress.
func (p policy) made(at, key string, value any) error {
	switch key {
	case "headService", "serveService":
		service, _ := value.(map[string]any)
		spec, _ := service["spec"].(map[string]any)
		return p.service(at+".spec", spec)
	case "serviceType":
		kind, _ := value.(string)
		return p.serviceType(at, kind)
	case "enableIngress":
		if value == true && !p.allowsKind(ingress) {
			return denied(at, "is true", "remove it, or have "+ingress+" listed in the queue's objectPolicy.kinds")
		}
	}
	return nil
}

const ingress = "Ingress.networking.k8s.io"
