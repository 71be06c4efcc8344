package workload

import "strings"

// ObjectKind is a kind of objects with the API version in which they are created, such as
// "kubeflow.org/v1 PyTorchJob" or "v1 Pod".
type ObjectKind string

// NewObjectKind returns the kind of an API version.
func NewObjectKind(apiVersion, kind string) ObjectKind { return ObjectKind(apiVersion + " " + kind) }

// AnyKind stands for all kinds of an API version where it is unknown which it serves.
func AnyKind(apiVersion string) ObjectKind { return NewObjectKind(apiVersion, AllKinds) }

// String is how messages call the kind.
func (k ObjectKind) String() string {
	apiVersion, kind, _ := strings.Cut(string(k), " ")
	return kind + " of " + apiVersion
}

// Any returns AnyKind of the API version of the kind.
func (k ObjectKind) Any() ObjectKind {
	apiVersion, _, _ := strings.Cut(string(k), " ")
	return AnyKind(apiVersion)
}

// rayVersion is the API version in which Ray objects are created; package ray has it, too.
const rayVersion = "ray.io/v1"

// Needs returns the kinds that a cluster has to serve for the workload, as far as that is
// known: a workload that an earlier version took in does not have those of its AppWrapper.
func (w *Workload) Needs() []ObjectKind {
	if w.Kind != KindAppWrapper {
		switch w.Kind {
		case KindRayCluster, KindRayJob, KindRayService:
			return []ObjectKind{NewObjectKind(rayVersion, w.Kind)}
		}
		return nil
	}
	if len(w.PodSets) == 0 {
		return nil
	}
	return w.PodSets[0].Kinds
}
