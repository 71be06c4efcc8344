package appwrapper

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// Kind is the kind of AppWrappers, and of the workloads made of them.
const Kind = workload.KindAppWrapper

// Groups and versions that are read. LegacyGroup has v1beta1 only.
const (
	Group       = "workload.codeflare.dev"
	LegacyGroup = "mcad.ibm.com"
	V1beta1     = "v1beta1"
	V1beta2     = "v1beta2"
)

// roleDeclared is the role of a pod set that an AppWrapper declares beyond what
// its templates say: room is reserved for it, and readiness does not count its pods.
const roleDeclared = "declared"

// MaxItems bounds the wrapped objects.
const MaxItems = 256

// ErrInvalid is wrapped by every error of Read that is not package ray's.
var ErrInvalid = errors.New("invalid AppWrapper")

// Wrapper is an AppWrapper as read.
type Wrapper struct {
	// Version is V1beta1 or V1beta2, by what the object contains: the API server
	// returns an object in either version, whichever it was written in.
	Version                       string
	Namespace, Name, GenerateName string
	// Queue is what its label names; empty for none.
	Queue string
	// PriorityClass is the WorkloadPriorityClass that a label names.
	PriorityClass string
	Priority      int32
	Bundle        bundle.Bundle
	PodSets       []workload.PodSet
	Life          workload.Life
	// SuccessTTL is how long the object stays after it has succeeded; nil for ever.
	SuccessTTL *time.Duration
	// Warnings name what was accepted and does nothing, and demand that was
	// declared too low.
	Warnings []string
}

// Labels that name a queue or a priority class; Kueue's serve where Muster's are
// not there.
const (
	QueueLabel         = kube.QueueNameLabel
	PriorityLabel      = kube.PriorityClassLabel
	KueuePriorityLabel = "kueue.x-k8s.io/priority-class"
)

// PriorityClassOf is the WorkloadPriorityClass that the labels of an object name;
// empty for none.
func PriorityClassOf(labels map[string]any) string {
	if class := text(labels, PriorityLabel); class != "" {
		return class
	}
	return text(labels, KueuePriorityLabel)
}

// Is reports whether the document calls itself an AppWrapper.
func Is(tree map[string]any) bool { return tree["kind"] == Kind }

// Read reads one AppWrapper; the operator is what KubeRay makes of wrapped Ray
// objects.
func Read(operator ray.Operator, tree map[string]any) (Wrapper, error) {
	if err := ray.CheckValues(tree); err != nil {
		return Wrapper{}, err
	}
	r := &reader{operator: operator, items: map[string]string{}, kinds: map[workload.ObjectKind]bool{}}
	if err := r.identify(tree); err != nil {
		return Wrapper{}, err
	}
	spec, err := object("spec", tree["spec"], "resources.GenericItems (v1beta1) or components (v1beta2)")
	if err != nil {
		return Wrapper{}, err
	}
	switch {
	case spec["components"] != nil && spec["resources"] != nil:
		err = refuse("spec", "has both resources and components", "want one of them: they are of different versions")
	case spec["components"] == nil && spec["resources"] == nil:
		err = refuse("spec", "has neither components nor resources", "want the wrapped objects in components (v1beta2) or resources.GenericItems (v1beta1)")
	case spec["components"] != nil:
		r.Version = V1beta2
		err = r.v1beta2(spec)
	default:
		r.Version = V1beta1
		err = r.v1beta1(spec)
	}
	if err == nil {
		err = r.finish()
	}
	r.Warnings = append(r.Warnings, kube.MistakenKeys(tree)...)
	return r.Wrapper, err
}

// reader is an AppWrapper in the course of being read.
type reader struct {
	Wrapper
	operator    ray.Operator
	annotations map[string]any
	items       map[string]string // where an object was seen first, by identity
	manyRays    bool              // several items of which package ray knows the pods
	podGroups   []podGroup
	clusters    ray.Clusters // of the AppWrapper itself
	kinds       map[workload.ObjectKind]bool
}

func (r *reader) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *reader) identify(tree map[string]any) error {
	version, _ := tree["apiVersion"].(string)
	switch version {
	case Group + "/" + V1beta1, Group + "/" + V1beta2, LegacyGroup + "/" + V1beta1:
	default:
		return refuse("apiVersion", fault.Quote(version)+" is not known for an AppWrapper", "want "+Group+"/"+V1beta1+" or "+Group+"/"+V1beta2)
	}
	metadata, isMap := tree["metadata"].(map[string]any)
	if !isMap {
		return refuse("metadata", "is missing", "want an object with a name")
	}
	r.Name, r.GenerateName, r.Namespace = text(metadata, "name"), text(metadata, "generateName"), text(metadata, "namespace")
	if r.Name == "" && r.GenerateName == "" {
		return refuse("metadata.name", "is missing", "want a name, or generateName")
	}
	if err := r.checkName(metadata); err != nil {
		return err
	}
	labels, _ := metadata["labels"].(map[string]any)
	r.Queue, r.PriorityClass = text(labels, QueueLabel), PriorityClassOf(labels)
	if r.Queue == "" {
		r.Queue = text(labels, kube.KueueQueueLabel)
	}
	r.annotations, _ = metadata["annotations"].(map[string]any)
	var err error
	if r.Life, err = ray.ReadLife(metadata); err == nil && r.Life.IdleTime > 0 {
		err = refuse("metadata.annotations["+kube.IdleTimeKey+"]", "is set", "remove it: of wrapped objects Muster does not see whether they are idle")
	}
	if err == nil {
		r.clusters, err = ray.ReadClusters(metadata)
	}
	return err
}

// finish checks what concerns the whole, and has every pod set select the clusters that the
// AppWrapper selects. Where it selects none, its objects do for their own.
func (r *reader) finish() error {
	for i := range r.PodSets {
		set := &r.PodSets[i]
		set.Clusters, set.PreferClusters = cmp.Or(r.clusters.May, set.Clusters), cmp.Or(r.clusters.Prefers, set.PreferClusters)
	}
	if len(r.Bundle.Items) == 0 {
		return refuse("spec", "wraps no object", "want at least one")
	}
	if r.Priority != 0 && r.PriorityClass != "" {
		return refuse("spec.priority", fmt.Sprintf("is %d, and a label names the priority class %q", r.Priority, r.PriorityClass), "want one of them")
	}
	pods := 0
	for _, set := range r.PodSets {
		pods += set.Count
	}
	if len(r.PodSets) > 0 {
		r.PodSets[0].Kinds = slices.Sorted(maps.Keys(r.kinds))
	}
	if pods == 0 {
		return refuse("spec", "wraps nothing that makes pods, as far as Muster can see",
			"wrap what makes pods, or declare them in custompodresources (v1beta1) or podSets (v1beta2)")
	}
	if pods > ray.MaxPods {
		return refuse("spec", fmt.Sprintf("makes %d pods", pods), fmt.Sprintf("a gang has at most %d pods", ray.MaxPods))
	}
	for _, group := range r.podGroups {
		if group.minMember > pods {
			return refuse(group.where+".spec.minMember", fmt.Sprintf("is %d, but the AppWrapper makes %d pods", group.minMember, pods),
				"lower it: the group would wait for ever")
		}
	}
	return nil
}

// Manifest returns the stored form.
func (w Wrapper) Manifest() (json.RawMessage, error) { return w.Bundle.Encode() }
