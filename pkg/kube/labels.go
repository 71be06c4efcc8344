// Package kube turns Kubernetes objects into Muster's values: pods into
// requests and constraints, nodes into capacity; and it holds the labels that
// Muster puts on what it creates.
//
// It is pure and talks to no API server; it reads no Ray kinds (package ray).
package kube

// Labels and annotations on the objects and pods of a gang.
const (
	WorkloadLabel = "muster.dev/workload" // the workload's id
	// ClusterLabel is what queue-manager calls the cluster. It tells apart the
	// Musters that share one Kubernetes cluster: each must call it otherwise.
	ClusterLabel = "muster.dev/cluster"
	AttemptLabel = "muster.dev/attempt"
	QueueLabel   = "muster.dev/queue"
	PodSetLabel  = "muster.dev/pod-set" // on pods only
	EpochKey     = "muster.dev/epoch"   // annotation: of the leader that decided it
	// EvictingAtKey is an annotation on the object of a workload that will be
	// evicted: when, in RFC 3339.
	EvictingAtKey = "muster.dev/evicting-at"
)

// Annotations by which a manifest asks for a life of its own; see workload.Life.
const (
	ReadyDeadlineKey   = "muster.dev/ready-deadline"
	OnPodLossKey       = "muster.dev/on-pod-loss"
	CheckpointGraceKey = "muster.dev/checkpoint-grace"
	MaxRunTimeKey      = "muster.dev/max-run-time"
	RunTimeKey         = "muster.dev/run-time"
	IdleTimeKey        = "muster.dev/idle-time"
)

// LastUsedKey is an annotation on a live RayCluster: when it was used last, in RFC
// 3339. Whoever knows may write it; see workload.Life.IdleTime.
const LastUsedKey = "muster.dev/last-used"

// AutoscalingKey is the annotation by which a manifest says at which size a
// cluster with Ray's autoscaler is admitted: "maximum" or "minimum".
const AutoscalingKey = "muster.dev/autoscaling"

// TraceparentKey is an annotation: W3C's traceparent of the command to create the
// object, where traces are on.
const TraceparentKey = "muster.dev/traceparent"

// HeldKey is an annotation: the UID of an object that is not created by Muster
// but held by suspend, and released.
const HeldKey = "muster.dev/held"

// IdentityKey is an annotation in the stored manifest of a held object: the user
// who created it, as JSON (workload.Identity). Intake sets it from what the API
// server stamped. It is never read from an object, which its owner can write.
const IdentityKey = "muster.dev/identity"

// PlacementGate keeps a pod from being scheduled until the dispatcher has
// pinned it to its reserved node.
const PlacementGate = "muster.dev/placement"

// RayClusterLabel is KubeRay's, on the pods of a RayCluster.
const RayClusterLabel = "ray.io/cluster"

// HostnameLabel is the node label that pins a pod.
const HostnameLabel = "kubernetes.io/hostname"
