package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// placeholderImage is never pulled.
const placeholderImage = "registry.k8s.io/pause:3.10"

// show does the next step towards the placeholder pods of a gang being there, one gang at a
// time. They have no scheduler and are marked as pods for which a scheduler found no node, so
// that an autoscaler adds nodes for them, and nothing ever binds them.
func (p *pass) show(ctx context.Context) (time.Duration, error) {
	if !p.showing.TryLock() {
		return requestLookAgain, nil
	}
	defer p.showing.Unlock()
	all, err := p.cluster.Placeholders(ctx, "", "")
	if err != nil {
		return 0, err
	}
	there := map[string]kubernetes.Placeholder{}
	if err := p.hideUnknown(ctx, all); err != nil {
		return 0, err
	}
	for _, pod := range all {
		switch {
		case pod.Workload != p.command.Workload && p.workloads.hasShown(pod):
			return requestLookAgain, p.waitToShow(ctx)
		case pod.Workload == p.command.Workload && pod.Request == p.command.Provision.Name:
			there[pod.Name] = pod
		}
	}
	if len(there) == 0 { // those of an earlier number may be
		if err := p.removeRequests(ctx, p.command.Provision.Name); err != nil {
			return 0, err
		}
	}
	for _, pod := range there {
		if pod.Node != "" {
			return 0, p.placeholderBound(ctx, pod)
		}
	}
	if done, again, err := p.createPlaceholders(ctx, there); !done {
		return again, err
	}
	status := p.requestStatus()
	status.Created, status.State, status.Message = true, event.RequestProvisioned, ""
	return requestMissed, p.report(ctx)
}

// waitToShow reports that the pods of another gang are still there.
func (p *pass) waitToShow(ctx context.Context) error {
	p.status.Provision.Message = "placeholder pods of another gang are still there"
	return p.report(ctx)
}

// placeholderBound takes all pods back when something has bound one: they must never run.
func (p *pass) placeholderBound(ctx context.Context, pod kubernetes.Placeholder) error {
	if err := p.removePlaceholders(ctx, ""); err != nil {
		return err
	}
	p.status.Provision.State = event.RequestFailed
	p.status.Provision.Message = fmt.Sprintf("pod %s was bound to node %s; no scheduler may serve the name %s, and nothing may change it", pod.Name, pod.Node, kubernetes.PlaceholderScheduler)
	return p.report(ctx)
}

// createPlaceholders creates the pods that are missing and marks them all as pending.
func (p *pass) createPlaceholders(ctx context.Context, there map[string]kubernetes.Placeholder) (done bool, again time.Duration, err error) {
	if len(there) == 0 {
		for _, one := range p.objects.parts() { // what may not run needs no nodes
			if err := one.permit(ctx, p); err != nil {
				again, err = p.requestRefused(ctx, err)
				return false, again, err
			}
		}
	}
	pods, err := p.placeholders()
	if err != nil {
		again, err = p.requestRefused(ctx, finalError{err})
		return false, again, err
	}
	for _, pod := range pods {
		if _, has := there[pod.id.Name]; has {
			continue
		}
		uid, err := p.cluster.CreateItem(ctx, pod.id, pod.manifest)
		if err != nil {
			again, err = p.requestNotCreated(ctx, err)
			return false, again, err
		}
		there[pod.id.Name] = kubernetes.Placeholder{Namespace: pod.id.Namespace, Name: pod.id.Name, UID: uid, Workload: p.command.Workload}
	}
	for _, pod := range pods { // when all are there: an autoscaler would add nodes for a part
		if seen := there[pod.id.Name]; !seen.Shown {
			if err := p.cluster.ShowPlaceholder(ctx, seen); err != nil {
				again, err = p.requestNotCreated(ctx, err)
				return false, again, err
			}
		}
	}
	return true, 0, nil
}

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
	for _, field := range []string{"nodeSelector", "affinity", "tolerations", "priorityClassName", "runtimeClassName", "overhead"} {
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

// hide removes the placeholder pods of a gang before its object is created. It reports whether
// some were there.
func (p *pass) hide(ctx context.Context) (shown bool, err error) {
	if p.command.Provision == nil || p.command.Provision.Class != workload.PlaceholderClass {
		return false, nil
	}
	if err := p.removePlaceholders(ctx, ""); err != nil {
		return true, err
	}
	pods, err := p.cluster.Placeholders(ctx, p.command.Namespace, p.command.Workload)
	return len(pods) > 0, err
}

// removePlaceholders deletes the placeholder pods of the workload, but for those of a request.
func (p *pass) removePlaceholders(ctx context.Context, wanted string) error {
	pods, err := p.cluster.Placeholders(ctx, p.command.Namespace, p.command.Workload)
	faults := []error{err}
	for _, pod := range pods {
		if wanted == "" || pod.Request != wanted {
			faults = append(faults, deletePlaceholder(ctx, p.cluster, pod))
		}
	}
	return errors.Join(faults...)
}

func deletePlaceholder(ctx context.Context, cluster podDeleter, pod kubernetes.Placeholder) error {
	return cluster.DeletePod(ctx, gang.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, true)
}
