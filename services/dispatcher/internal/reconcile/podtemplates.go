package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// podTemplate is a PodTemplate with the number of pods that lack a place, of the pod sets that share it.
type podTemplate struct {
	name     string
	pods     int
	manifest json.RawMessage
}

// podTemplates are the PodTemplates of a request: the pod templates of the manifest as they
// will be created, without the gate, which no autoscaler takes off.
func (p *pass) podTemplates() ([]podTemplate, error) {
	specs, err := p.stampedTemplates()
	if err != nil {
		return nil, err
	}
	var sets []askedSet
	for _, asked := range p.command.Provision.Pods {
		template := specs[asked.PodSet]
		if template == nil {
			return nil, fmt.Errorf("the manifest has no pod template for pod set %q", asked.PodSet)
		}
		sets = append(sets, askedSet{asked.PodSet, asked.Pods, template})
	}
	if sets, err = mergeSets(sets, p.command.Provision.Merge); err != nil {
		return nil, err
	}
	var templates []podTemplate
	for _, asked := range sets {
		name := templateName(p.command.Provision.Name, asked.podSet)
		manifest, err := json.Marshal(map[string]any{
			"apiVersion": podTemplatesAPI, "kind": podTemplateKind, "template": asked.template,
			"metadata": p.metadataOf(name, map[string]any{requestOfKey: p.command.Provision.Name}),
		})
		if err != nil {
			return nil, fmt.Errorf("encode PodTemplate %s: %w", name, err)
		}
		templates = append(templates, podTemplate{name, asked.pods, manifest})
	}
	return templates, nil
}

// templateName is the name of a PodTemplate, as Kueue writes it. No label of it ends with a
// dash where it is cut.
func templateName(request, podSet string) string {
	name := fmt.Sprintf("%s-%s-%s", templatePrefix, request, podSet)
	if len(name) <= maxTemplateName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:maxTemplateName-6], "-.") + "-" + hex.EncodeToString(sum[:])[:5]
}

// stampedTemplates are the pod templates of all objects by pod set.
func (p *pass) stampedTemplates() (map[string]map[string]any, error) {
	in := stampOf(p)
	var manifests []json.RawMessage
	if w, several := p.creation.(*wrappedObjects); several {
		for _, item := range w.bundle.Items {
			stamped, err := w.bundle.Stamp(item, in)
			if err != nil {
				return nil, err
			}
			manifests = append(manifests, stamped)
		}
	} else {
		stamped, err := ray.Stamp(p.command.Manifest, p.command.Kind, in)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, stamped)
	}
	templates := map[string]map[string]any{}
	for _, manifest := range manifests {
		tree, err := ray.Tree(manifest)
		if err != nil {
			return nil, err
		}
		collectTemplates(tree, templates)
	}
	return templates, nil
}

// collectTemplates finds the pod templates in a stamped object by the label of their pod set.
func collectTemplates(value any, into map[string]map[string]any) {
	switch v := value.(type) {
	case []any:
		for _, inner := range v {
			collectTemplates(inner, into)
		}
	case map[string]any:
		metadata, _ := v["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		podSet, _ := labels[kube.PodSetLabel].(string)
		spec, isPod := v["spec"].(map[string]any)
		if podSet != "" && isPod {
			into[podSet] = map[string]any{"metadata": metadata, "spec": withRequests(spec)}
			return
		}
		for _, inner := range v {
			collectTemplates(inner, into)
		}
	}
}

// withRequests completes the requests of containers by their limits: the API server does so
// for pods, and not for the pods of a PodTemplate.
func withRequests(spec map[string]any) map[string]any {
	for _, field := range []string{"containers", "initContainers"} {
		containers, _ := spec[field].([]any)
		for _, one := range containers {
			container, _ := one.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			limits, _ := resources["limits"].(map[string]any)
			if len(limits) == 0 {
				continue
			}
			requests, _ := resources["requests"].(map[string]any)
			completed := maps.Clone(limits)
			maps.Copy(completed, requests)
			resources["requests"] = completed
		}
	}
	return spec
}

// requestAnnotations are what pods carry that come with the nodes of a request.
func requestAnnotations(p *pass) map[string]map[string]string {
	wanted := p.command.Provision
	if wanted == nil || p.command.State != event.Present || wanted.Class == workload.PlaceholderClass {
		return nil
	}
	all := map[string]map[string]string{}
	for _, asked := range wanted.Pods {
		all[asked.PodSet] = map[string]string{consumeKey: wanted.Name, classKey: wanted.Class}
	}
	return all
}
