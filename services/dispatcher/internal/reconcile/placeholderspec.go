package reconcile

import (
	"encoding/json"
	"fmt"
	"strconv"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// placeholderImage is never pulled.
const placeholderImage = "registry.k8s.io/pause:3.10"

// placeholder is a pod that is to exist.
type placeholder struct {
	id       bundle.Identity
	manifest json.RawMessage
}

// placeholders are the pods of a request.
func (p *pass) placeholders() (pods []placeholder, err error) {
	specs, err := p.stampedTemplates()
	if err != nil {
		return nil, err
	}
	for _, asked := range p.command.Provision.Pods {
		template := specs[asked.PodSet]
		if template == nil {
			return nil, fmt.Errorf("the manifest has no pod template for pod set %q", asked.PodSet)
		}
		spec, _ := template["spec"].(map[string]any)
		bare := placeholderSpec(spec)
		for i := range asked.Pods {
			name := templateName(p.command.Provision.Name, asked.PodSet+"-"+strconv.Itoa(i))
			manifest, err := json.Marshal(map[string]any{"apiVersion": podTemplatesAPI, "kind": "Pod", "metadata": p.placeholderMetadata(name), "spec": bare})
			if err != nil {
				return nil, fmt.Errorf("encode placeholder pod %s: %w", name, err)
			}
			pods = append(pods, placeholder{bundle.Identity{APIVersion: podTemplatesAPI, Kind: "Pod", Namespace: p.command.Namespace, Name: name}, manifest})
		}
	}
	return pods, nil
}

// placeholderMetadata has none of the labels of a gang's pods, nor those of the manifest: no
// controller or Service may take the pod for its own.
func (p *pass) placeholderMetadata(name string) map[string]any {
	return map[string]any{
		"name": name, "namespace": p.command.Namespace,
		"labels":      map[string]any{kube.PlaceholderLabel: string(p.command.Workload), kube.PlaceholderClusterLabel: p.command.Cluster},
		"annotations": map[string]any{requestOfKey: p.command.Provision.Name, kube.EpochKey: strconv.FormatInt(p.command.Epoch, 10)},
	}
}

// placeholderSpec keeps of a pod what an autoscaler chooses nodes by, and nothing that could run.
func placeholderSpec(spec map[string]any) map[string]any {
	bare := map[string]any{
		"schedulerName": kubernetes.PlaceholderScheduler, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
		"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 65535, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
	}
	if affinity, _ := spec["affinity"].(map[string]any); affinity["nodeAffinity"] != nil { // the pods have no labels that affinity between pods could select
		bare["affinity"] = map[string]any{"nodeAffinity": affinity["nodeAffinity"]}
	}
	for _, field := range []string{"nodeSelector", "tolerations", "priorityClassName", "runtimeClassName", "overhead"} {
		if value, has := spec[field]; has {
			bare[field] = value
		}
	}
	for _, field := range []string{"containers", "initContainers"} {
		containers, _ := spec[field].([]any)
		var kept []any
		for i, one := range containers {
			container, _ := one.(map[string]any)
			empty := map[string]any{
				"name": fmt.Sprintf("placeholder-%s-%d", map[string]string{"containers": "c", "initContainers": "i"}[field], i), "image": placeholderImage,
				"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}},
			}
			for _, field := range []string{"resources", "restartPolicy"} { // a sidecar's requests add up
				if value, has := container[field]; has {
					empty[field] = value
				}
			}
			kept = append(kept, empty)
		}
		if len(kept) > 0 {
			bare[field] = kept
		}
	}
	return bare
}
