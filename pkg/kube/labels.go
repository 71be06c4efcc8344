package kube

import "muster.dev/muster/pkg/spec/capacity"

// Labels and annotations on the objects and pods of a gang.
const (
	WorkloadLabel = "muster.dev/workload" // the workload's id
	// ClusterLabel is the cluster's name in queue-manager. Several Musters that share one
	// Kubernetes cluster must use different names for it.
	ClusterLabel = "muster.dev/cluster"
	AttemptLabel = "muster.dev/attempt"
	QueueLabel   = "muster.dev/queue"
	PodSetLabel  = "muster.dev/pod-set" // on pods only
	// PlaceholderLabel, on pods that show a gang to an autoscaler and never run, is the workload's
	// id, and PlaceholderClusterLabel the cluster. They have none of the labels above: nothing may
	// take them for pods of the gang.
	PlaceholderLabel        = "muster.dev/placeholder"
	PlaceholderClusterLabel = "muster.dev/placeholder-cluster"
	// PermissionLabel is on objects and pods that may be kept only while the permission of their
	// cluster lasts; its value is PermissionNeeded.
	PermissionLabel  = "muster.dev/permission"
	PermissionNeeded = "needed"
	EpochKey         = "muster.dev/epoch" // annotation: the epoch of the deciding leader
	// EvictingAtKey is an annotation on the object of a workload that will be evicted:
	// the time, in RFC 3339.
	EvictingAtKey = "muster.dev/evicting-at"
)

// Annotations of a manifest that set the workload's lifetime rules; see workload.Life.
const (
	ReadyDeadlineKey      = "muster.dev/ready-deadline"
	OnPodLossKey          = "muster.dev/on-pod-loss"
	StartKey              = "muster.dev/start"
	CheckpointGraceKey    = "muster.dev/checkpoint-grace"
	CheckpointIntervalKey = "muster.dev/checkpoint-interval"
	MaxRunTimeKey         = "muster.dev/max-run-time"
	RunTimeKey            = "muster.dev/run-time"
	IdleTimeKey           = "muster.dev/idle-time"
	ClustersKey           = "muster.dev/clusters"        // a workload.ClusterSelector
	PreferClustersKey     = "muster.dev/prefer-clusters" // a workload.ClusterSelector
)

// LastUsedKey is an annotation on a live RayCluster: the time of its last use, in RFC
// 3339. Any client with the right may write it; see workload.Life.IdleTime.
const LastUsedKey = "muster.dev/last-used"

// LastCheckpointKey is an annotation on a live object, or on one of its pods: the time of the
// last checkpoint of its work, in RFC 3339. Any client with the right may write it. An eviction is taken to
// lose the work since then; see workload.Life.CheckpointInterval for when that counts in a
// decision.
const LastCheckpointKey = "muster.dev/last-checkpoint"

// AutoscalingKey is the annotation of a manifest that sets the size at which a cluster
// with Ray's autoscaler is admitted: "maximum" or "minimum".
const AutoscalingKey = "muster.dev/autoscaling"

// MinReplicasKey is an annotation of the pod template of a worker group: the fewest
// replicas with which the group may start.
const MinReplicasKey = "muster.dev/min-replicas"

// TraceparentKey is an annotation: the W3C traceparent of the command that created the
// object, if tracing is on.
const TraceparentKey = "muster.dev/traceparent"

// CarriedFromKey and CarriedDigestKey are annotations of a ConfigMap or Secret that Muster has copied
// from another cluster: its name, and the digest of the content.
const (
	CarriedFromKey   = "muster.dev/carried-from"
	CarriedDigestKey = "muster.dev/carried-digest"
)

// SuspendedUIDKey is an annotation: the UID of an object that Muster did not create, but
// suspends and resumes.
const SuspendedUIDKey = "muster.dev/held"

// StateKey and ReasonKey are annotations of an object that Muster did not create, but
// suspends and resumes: the state of its workload and the reason for it. StateAdmitted
// stands for every phase from the admission on in which the object is released: KubeRay's
// status is how far its pods are.
const (
	StateKey  = "muster.dev/state"
	ReasonKey = "muster.dev/reason"
	// StartsKey is when a waiting one is estimated to start: its p50 and p90, or unknown.
	StartsKey = "muster.dev/starts"
	// PositionKey is its position in the queue.
	PositionKey   = "muster.dev/position"
	StateAdmitted = "admitted"
)

// HomeKey is an annotation of an object that Muster has created in the place of a user's object: the
// cluster and the name of that one.
const HomeKey = "muster.dev/home"

// PlaceKey and StaleKey are annotations of a user's object that moves: the cluster and the name of
// the object in its place, and since when its status is not known any more.
const (
	PlaceKey = "muster.dev/place"
	StaleKey = "muster.dev/status-stale-since"
)

// WorkloadFinalizer is on an object that Muster did not create, until its workload has been
// torn down.
const WorkloadFinalizer = "muster.dev/workload"

// IdentityKey is an annotation in the stored manifest of a suspended object: the user
// that created it, as JSON (workload.Identity). Intake sets it from what the API server
// stamped. Muster never reads it from an object, because its owner can write it.
const IdentityKey = "muster.dev/identity"

// PlacementGate is the scheduling gate of a pod until the dispatcher has pinned it to
// its reserved node.
const PlacementGate = "muster.dev/placement"

// RayClusterLabel is KubeRay's, on the pods of a RayCluster.
const RayClusterLabel = "ray.io/cluster"

// HostnameLabel is the node label that pins a pod.
const HostnameLabel = capacity.HostnameLabel

// KueueQueueLabel is Kueue's: it names the LocalQueue of an object or a pod. What Muster
// creates must not carry it, or Kueue would queue it a second time.
const KueueQueueLabel = "kueue.x-k8s.io/queue-name"
