package ray

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/workload"
)

// StampInput is what Muster writes into a manifest.
type StampInput struct {
	Workload        workload.ID
	Cluster         string // what queue-manager calls it
	Attempt         int
	Epoch           int64
	Queue           string
	Namespace, Name string
	// Placements are of the attempt; of them the submitter's is written into the
	// manifest. The other pods are placed when they exist.
	Placements []workload.Placement
	// Terms are what the flavors of pod sets add to their pods.
	Terms []workload.PodSetTerms
	// Trusted: the scheduler places the pods; they get no gate and no pin.
	Trusted bool
	// Unplaced: no pod has a place yet. The templates are for asking for nodes; they get no
	// gate and no pin.
	Unplaced bool
	// Permitted: the object is kept only while the permission of its cluster lasts.
	Permitted bool
	// Sizes are the numbers of pods of the worker groups that start with fewer than the
	// manifest says.
	Sizes map[string]int
	// Annotations are added to the pods of pod sets.
	Annotations map[string]map[string]string
	// Traceparent is noted on the object when it is not empty.
	Traceparent string
	// Home is the cluster and the name of the user's object in whose place this one is; empty
	// where there is none.
	Home string
}

// serverOwned are the fields of metadata that an object to be created must not
// have or that the API server fills in.
var serverOwned = []string{
	"generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// ofAnotherCluster are the annotations of a manifest that mean nothing where it comes from another
// cluster. With the first two it could take over an object, or the rights of a user.
var ofAnotherCluster = []string{kube.SuspendedUIDKey, kube.IdentityKey, kube.Prefix + "user", kube.Prefix + "user-uid", kube.Prefix + "user-groups"}

// Stamp returns the object to create for one attempt of a workload. All else in
// the manifest, which Read has accepted, stays as it is.
func Stamp(manifest json.RawMessage, kind string, s StampInput) (json.RawMessage, error) {
	tree, err := parse(manifest)
	if err != nil {
		return nil, fmt.Errorf("stamp %s of workload %s: %w", kind, s.Workload, err)
	}
	if err := s.object(tree); err != nil {
		return nil, fmt.Errorf("stamp %s of workload %s: %w", kind, s.Workload, err)
	}
	if err := s.spec(tree, kind); err != nil {
		return nil, fmt.Errorf("stamp %s of workload %s: %w", kind, s.Workload, err)
	}
	return unescaped.JSON(tree)
}

func (s StampInput) spec(tree map[string]any, kind string) error {
	spec, err := child(tree, "spec")
	if err != nil {
		return err
	}
	metadata, err := child(tree, "metadata")
	if err != nil {
		return err
	}
	annotations, err := child(metadata, "annotations")
	if err != nil {
		return err
	}
	size, _ := annotations[kube.AutoscalingKey].(string)
	switch kind {
	case RayJob:
		return s.job(spec, size)
	case RayService:
		return s.service(spec, size)
	}
	return s.cluster(spec, size)
}

func (s StampInput) object(tree map[string]any) error {
	delete(tree, "status")
	tree["apiVersion"] = GroupVersion
	metadata, err := child(tree, "metadata")
	if err != nil {
		return err
	}
	for _, field := range serverOwned {
		delete(metadata, field)
	}
	metadata["name"], metadata["namespace"] = s.Name, s.Namespace
	if err := s.setLabels(metadata, map[string]string{
		kube.WorkloadLabel: string(s.Workload), kube.ClusterLabel: s.Cluster, kube.AttemptLabel: strconv.Itoa(s.Attempt), kube.QueueLabel: s.Queue,
	}); err != nil {
		return err
	}
	annotations, err := child(metadata, "annotations")
	if err != nil {
		return err
	}
	annotations[kube.EpochKey] = strconv.FormatInt(s.Epoch, 10)
	delete(annotations, kube.HomeKey) // a manifest cannot say it
	if s.Home != "" {
		annotations[kube.HomeKey] = s.Home
		for _, key := range ofAnotherCluster {
			delete(annotations, key)
		}
		delete(metadata, "finalizers")
		delete(metadata, "ownerReferences")
	}
	if s.Traceparent != "" {
		annotations[kube.TraceparentKey] = s.Traceparent
	}
	return nil
}

func (s StampInput) setLabels(metadata map[string]any, labels map[string]string) error {
	present, err := child(metadata, "labels")
	if err != nil {
		return err
	}
	delete(present, kube.KueueQueueLabel)
	delete(present, kube.PermissionLabel)
	if s.Permitted {
		present[kube.PermissionLabel] = kube.PermissionNeeded
	}
	for key, value := range labels {
		present[key] = value
	}
	return nil
}

// cluster stamps the spec of a RayCluster that is admitted at the size that its
// annotation says, if it has an autoscaler.
func (s StampInput) cluster(spec map[string]any, size string) error {
	head, err := child(spec, "headGroupSpec")
	if err != nil {
		return err
	}
	if err := s.group(head, HeadGroup); err != nil {
		return err
	}
	autoscaling, _ := spec["enableInTreeAutoscaling"].(bool)
	groups, _ := spec["workerGroupSpecs"].([]any)
	for _, item := range groups {
		group, isObject := item.(map[string]any)
		name, _ := group["groupName"].(string)
		if !isObject || name == "" {
			return refuse("workerGroupSpecs", "has a group without a name", "submit a manifest that Muster has read")
		}
		if err := s.group(group, name); err != nil {
			return err
		}
		if pods, smaller := s.Sizes[name]; smaller {
			if err := setSize(group, pods); err != nil {
				return err
			}
		}
		if autoscaling && size != AtMinimum {
			if err := capSize(group); err != nil {
				return err
			}
		}
	}
	return nil
}

// group stamps the pod template of the head or of a worker group. Groups without
// pods get the gate, too: if they are ever scaled up, their pods wait.
func (s StampInput) group(group map[string]any, podSet string) error {
	if labels, isObject := group["labels"].(map[string]any); isObject {
		delete(labels, kube.KueueQueueLabel) // KubeRay copies them to the pods
	}
	template, err := child(group, "template")
	if err != nil {
		return err
	}
	spec, err := s.template(template, podSet)
	if err != nil {
		return err
	}
	if s.Trusted || s.Unplaced {
		return nil
	}
	gates, _ := spec["schedulingGates"].([]any)
	spec["schedulingGates"] = append(slices.Clone(gates), map[string]any{"name": kube.PlacementGate})
	return nil
}

// template labels the pods of a pod set and returns their spec.
func (s StampInput) template(template map[string]any, podSet string) (spec map[string]any, err error) {
	metadata, err := child(template, "metadata")
	if err != nil {
		return nil, err
	}
	if err := s.setLabels(metadata, map[string]string{
		kube.WorkloadLabel: string(s.Workload), kube.ClusterLabel: s.Cluster, kube.AttemptLabel: strconv.Itoa(s.Attempt), kube.PodSetLabel: podSet,
	}); err != nil {
		return nil, err
	}
	if spec, err = child(template, "spec"); err != nil {
		return nil, err
	}
	if added := s.Annotations[podSet]; len(added) > 0 {
		annotations, err := child(metadata, "annotations")
		if err != nil {
			return nil, err
		}
		for key, value := range added {
			annotations[key] = value
		}
	}
	for _, terms := range s.Terms {
		if terms.PodSet == podSet {
			err = errors.Join(err, AddTerms(spec, terms), AddMetadata(metadata, terms))
		}
	}
	return spec, err
}

// service stamps the spec of a RayService. Without an upgrade strategy KubeRay
// would answer a change with a second cluster beside the first.
func (s StampInput) service(spec map[string]any, size string) error {
	cluster, err := child(spec, "rayClusterConfig")
	if err != nil {
		return err
	}
	strategy, err := child(spec, "upgradeStrategy")
	if err != nil {
		return err
	}
	strategy["type"] = string(rayv1.RayServiceUpgradeNone)
	return s.cluster(cluster, size)
}
