package submission

import (
	"fmt"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/podsets"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// appWrapper reads the manifest if it is an AppWrapper or pod sets. The queue is that
// of the submission, which its label may not contradict; a priority of the submission overrides
// its own.
func (s *submission) appWrapper(manifest []byte) (accepted *event.WorkloadSubmitted, is bool, err error) {
	tree, err := ray.Tree(manifest)
	if err != nil {
		return nil, false, err
	}
	var paths podsets.Paths
	switch {
	case podsets.Is(tree):
		if tree, paths, err = podsets.Wrapped(tree); err != nil {
			return nil, true, err
		}
	case !appwrapper.Is(tree):
		return nil, false, checkKind(tree)
	}
	wrapper, err := appwrapper.Read(s.operator, tree)
	if err != nil {
		return nil, true, paths.Of(err)
	}
	metadata, _ := tree["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if err := s.checkQueueLabel(labels); err != nil {
		return nil, true, err
	}
	bundled, err := wrapper.Manifest()
	if err != nil {
		return nil, true, err
	}
	class, err := s.priorityClass(wrapper.PriorityClass)
	if err != nil {
		return nil, true, err
	}
	priority := wrapper.Priority
	if s.numbered {
		priority = s.priority
	}
	name := ray.Name(ray.Object{Name: wrapper.Name, GenerateName: wrapper.GenerateName}, s.id)
	warnings := paths.Texts(append(wrapper.Warnings, ofNoObject(wrapper)...))
	return &event.WorkloadSubmitted{Manifest: bundled, MessageID: s.messageID(), PriorityClass: class, Warnings: boundWarnings(warnings), Workload: workload.Workload{
		ID: s.id, Queue: s.queue, Namespace: wrapper.Namespace, Kind: appwrapper.Kind, Name: name,
		Priority: priority, Digest: s.digest(bundled), PodSets: wrapper.PodSets, Life: wrapper.Life, Submitter: s.message.Submitter,
	}}, true, nil
}

// checkKind refuses a kind that nothing reads, and names those that can be submitted.
// Package ray refuses a RayCronJob itself, because it can say why.
func checkKind(tree map[string]any) error {
	switch kind, isText := tree["kind"].(string); {
	case !isText && tree["kind"] != nil, kind == ray.RayCluster, kind == ray.RayJob, kind == ray.RayService, kind == ray.RayCronJob:
		return nil
	default:
		return fmt.Errorf("kind: is %s; want RayCluster, RayJob, RayService, AppWrapper or PodSets", fault.Quote(kind))
	}
}

// ofNoObject warns of annotations that need an AppWrapper object, which a message does
// not create. The remains of an ended workload are its owner's to delete: the ledger
// has forgotten it when the TTL passes.
func ofNoObject(wrapper appwrapper.Wrapper) []string {
	if wrapper.SuccessTTL == nil {
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: is %s and does nothing for an AppWrapper that comes as a message: its objects may stay after their success, without holding places; "+
		"create the AppWrapper with kubectl, or give the wrapped jobs ttlSecondsAfterFinished", appwrapper.SuccessTTLKey, wrapper.SuccessTTL)}
}
