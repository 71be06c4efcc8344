// Package kubernetes is the dispatcher's access to one API server: the Ray
// objects and pods that carry Muster's labels, watched and uncached, and the
// writes that the dispatcher does.
//
// It decides nothing.
package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/lease"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// resources are the kinds that are dispatched, by the version that is read.
var resources = map[string]schema.GroupVersionResource{
	"RayCluster": {Group: "ray.io", Version: "v1", Resource: "rayclusters"},
	"RayJob":     {Group: "ray.io", Version: "v1", Resource: "rayjobs"},
	"RayService": {Group: "ray.io", Version: "v1", Resource: "rayservices"},
}

// Object is a Ray object as seen.
type Object struct {
	Kind, Namespace, Name, UID string
	// Workload and Attempt are from its labels; empty and 0 on foreign objects.
	Workload workload.ID
	Attempt  int
	// Epoch of the command that it was created by; 0 on foreign objects.
	Epoch    int64
	Deleting bool
	// Stamped: it carries the marks that Muster puts on all it creates.
	Stamped bool
	// Owned: another object controls it, such as the RayJob of a RayCluster, which is
	// its Controller.
	Owned      bool
	Controller gang.Controller
	// Sizes of the worker groups of a RayCluster: how many pods KubeRay shall keep;
	// Keeps are those that places are kept for.
	Sizes, Keeps map[string]int
	// LastUsed is when somebody says that it was used last; zero when nobody does.
	LastUsed time.Time
	// EvictingAt is what the object has been told of its eviction, as text.
	EvictingAt string
	// Held: it was not created by Muster but released, and is suspended again
	// instead of being deleted.
	Held bool
	// Outcome of a job that came to its end.
	Outcome string
	// Message is what KubeRay says of the outcome or, before it, of its failure
	// to create pods.
	Message string
}

// Client talks to the API server. It may be used concurrently.
type Client struct {
	cluster string // what queue-manager calls it; others' objects are foreign
	objects dynamic.Interface
	core    kubernetes.Interface
	raw     rest.Interface // posts JSON as it is
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	leases  coordinationv1.LeasesGetter
	rights  rights
}

// Connect returns a client of the named cluster with the rights of the kubeconfig, or of the pod it
// runs in when the path is empty. It limits itself by no rate, but by how many
// requests are on their way, which follows the API server's answers.
//
// What changes something passes only while the guard says that the lease is held;
// Leases alone are not under it.
func Connect(kubeconfig, cluster string, guard *lease.Guard, registry *prometheus.Registry) (*Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for leases at %s: %w", config.Host, err)
	}
	config.Wrap(guard.Wrap)         // inside of the limiter: asked after the wait
	limiter := newLimiter(registry) // one for all clients
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{limiter, next} })
	config.UserAgent = "muster-dispatcher"
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for Ray objects at %s: %w", config.Host, err)
	}
	core := rest.CopyConfig(config)
	core.ContentType = "application/vnd.kubernetes.protobuf"
	core.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	pods, err := kubernetes.NewForConfig(core)
	if err != nil {
		return nil, fmt.Errorf("client for pods at %s: %w", config.Host, err)
	}
	posting := rest.CopyConfig(config)
	posting.ContentType = "application/json"
	posting.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(posting)
	if err != nil {
		return nil, fmt.Errorf("client for creations at %s: %w", config.Host, err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(pods.Discovery()))
	return &Client{cluster: cluster, objects: objects, core: pods, raw: raw, mapper: mapper, leases: leases}, nil
}

// Leases is for the lease under which everything else is done.
func (c *Client) Leases() coordinationv1.LeasesGetter { return c.leases }

// Create posts a manifest as it is and returns the UID of the new object.
func (c *Client) Create(ctx context.Context, kind, namespace string, manifest json.RawMessage) (uid string, err error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(manifest, &meta); err != nil {
		return "", fmt.Errorf("read apiVersion of the manifest: %w", err)
	}
	version, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil {
		return "", fmt.Errorf("read apiVersion of the manifest: %w", err)
	}
	return uidOf(c.raw.Post().AbsPath("apis", version.Group, version.Version, "namespaces", namespace, resources[kind].Resource).
		Body([]byte(manifest)).Do(ctx))
}

// uidOf reads the answer to a creation.
func uidOf(result rest.Result) (string, error) {
	if err := result.Error(); err != nil { // which has what the API server says, unlike that of Raw
		return "", err
	}
	answer, err := result.Raw()
	if err != nil {
		return "", err
	}
	var created metav1.PartialObjectMetadata
	if err := json.Unmarshal(answer, &created); err != nil {
		return "", fmt.Errorf("read what was created: %w", err)
	}
	return string(created.UID), nil
}

// Get reads an object from the API server, uncached; nil when there is none.
func (c *Client) Get(ctx context.Context, kind, namespace, name string) (*Object, error) {
	found, err := c.objects.Resource(resources[kind]).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", kind, namespace, name, err)
	}
	object := objectOf(kind, found)
	if found.GetLabels()[kube.ClusterLabel] != c.cluster {
		object.Workload = "" // foreign, or of another Muster
	}
	return &object, nil
}

// ours selects what this cluster's dispatchers have made.
func (c *Client) ours() string { return kube.ClusterLabel + "=" + c.cluster }

// Delete removes exactly this object, what it owns in the background. An object
// that was released is somebody's own: it is suspended again and not the
// workload's any more.
func (c *Client) Delete(ctx context.Context, o Object) error {
	if o.Held {
		return c.hold(ctx, o)
	}
	uid, background := types.UID(o.UID), metav1.DeletePropagationBackground
	err := c.objects.Resource(resources[o.Kind]).Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}

// DeletePod removes exactly this pod: by force at once and whatever its kubelet
// says, or with the grace that the pod asks for.
func (c *Client) DeletePod(ctx context.Context, pod gang.Pod, force bool) error {
	uid := types.UID(pod.UID)
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if force {
		now := int64(0)
		options.GracePeriodSeconds = &now
	}
	err := c.core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Announce tells exactly this object when it will be evicted; the zero time
// takes that back.
func (c *Client) Announce(ctx context.Context, o Object, at time.Time) error {
	value := any(nil) // null removes the annotation
	if !at.IsZero() {
		value = at.UTC().Format(time.RFC3339)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.UID, "annotations": map[string]any{kube.EvictingAtKey: value},
	}})
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", o.Kind, o.Name, err)
	}
	_, err = c.objects.Resource(resources[o.Kind]).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}

// Left is what is there of a workload.
type Left struct {
	// Pods have not ended; Gated of them are still at the placement gate, which only
	// Muster lifts, and take no room.
	Pods, Gated int
	// Clusters are RayClusters, which could make more pods.
	Clusters int
}

// Nothing reports whether nothing holds capacity or may come to hold any.
func (l Left) Nothing() bool { return l == Left{} }

// Remaining reads, uncached, what is left of the workload.
func (c *Client) Remaining(ctx context.Context, id workload.ID, namespace string) (Left, error) {
	options := metav1.ListOptions{LabelSelector: c.ours() + "," + kube.WorkloadLabel + "=" + string(id)}
	podList, err := c.core.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return Left{}, fmt.Errorf("list pods of workload %s: %w", id, err)
	}
	var left Left
	for i := range podList.Items {
		pod := podOf(&podList.Items[i])
		if !pod.Holds() {
			continue
		}
		left.Pods++
		if pod.Gated && pod.Node == "" {
			left.Gated++
		}
	}
	clusterList, err := c.objects.Resource(resources["RayCluster"]).Namespace(namespace).List(ctx, options)
	if err != nil {
		return Left{}, fmt.Errorf("list RayClusters of workload %s: %w", id, err)
	}
	left.Clusters = len(clusterList.Items)
	return left, nil
}

// OrphanedPods reads, uncached, which of the given pods are still there and have
// no object that makes such pods: none controls them, or a RayCluster that is gone.
func (c *Client) OrphanedPods(ctx context.Context, id workload.ID, pods []gang.Pod) ([]gang.Pod, error) {
	list, err := c.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: c.ours() + "," + kube.WorkloadLabel + "=" + string(id)})
	if err != nil {
		return nil, fmt.Errorf("list pods of workload %s: %w", id, err)
	}
	var orphans []gang.Pod
	for i := range list.Items {
		pod := podOf(&list.Items[i])
		if !slices.ContainsFunc(pods, func(p gang.Pod) bool { return p.UID == pod.UID && p.Attempt == pod.Attempt }) || pod.Deleting {
			continue
		}
		if owner := pod.Controller; owner.Kind != "" {
			if owner.Kind != "RayCluster" {
				continue // somebody's, who would make it again
			}
			object, err := c.Get(ctx, owner.Kind, pod.Namespace, owner.Name)
			if err != nil {
				return nil, err
			}
			if object != nil && object.UID == owner.UID {
				continue
			}
		}
		orphans = append(orphans, pod)
	}
	return orphans, nil
}

// Pin sends a pod to a node and lifts the placement gate, in one write. A pod
// that is gone meanwhile is no error: its replacement will be seen. A conflict
// is one, for it may as well be with another writer of the same pod.
func (c *Client) Pin(ctx context.Context, pin gang.Pin) error {
	var gates []map[string]string // null removes the list
	for _, name := range pin.Pod.OtherGates {
		gates = append(gates, map[string]string{"name": name})
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pin.Pod.UID}, // of this very pod
		"spec": map[string]any{
			"nodeSelector":    map[string]string{kube.HostnameLabel: pin.Hostname},
			"schedulingGates": gates,
		},
	})
	if err != nil {
		return fmt.Errorf("encode patch of pod %s: %w", pin.Pod.Name, err)
	}
	_, err = c.core.CoreV1().Pods(pin.Pod.Namespace).Patch(ctx, pin.Pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("pin pod %s/%s to node %s: %w", pin.Pod.Namespace, pin.Pod.Name, pin.Hostname, err)
	}
	return nil
}

func objectOf(kind string, u *unstructured.Unstructured) Object {
	labels := u.GetLabels()
	attempt, _ := strconv.Atoi(labels[kube.AttemptLabel]) // 0 when it is not ours
	epoch, _ := strconv.ParseInt(u.GetAnnotations()[kube.EpochKey], 10, 64)
	o := Object{
		Epoch: epoch,
		Kind:  kind, Namespace: u.GetNamespace(), Name: u.GetName(), UID: string(u.GetUID()),
		Workload: workload.ID(labels[kube.WorkloadLabel]), Attempt: attempt,
		EvictingAt: u.GetAnnotations()[kube.EvictingAtKey],
		Stamped:    attempt > 0 && u.GetAnnotations()[kube.EpochKey] != "",
		Held:       u.GetAnnotations()[kube.HeldKey] != "",
		Deleting:   u.GetDeletionTimestamp() != nil, Owned: metav1.GetControllerOfNoCopy(u) != nil, Controller: controllerOf(u),
	}
	if kind == "RayJob" {
		o.Outcome, o.Message = outcomeOf(u)
	}
	if o.Outcome == "" {
		o.Message = troubleOf(u)
	}
	if kind == "RayCluster" {
		o.Sizes, o.Keeps = sizesOf(u)
		o.LastUsed = lastUsed(u)
	}
	return o
}

// lastUsed reads the annotation of whoever knows when a cluster was used last. One
// that is no time is none.
func lastUsed(u *unstructured.Unstructured) time.Time {
	at, err := time.Parse(time.RFC3339, u.GetAnnotations()[kube.LastUsedKey])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// sizesOf returns how many pods KubeRay keeps of each worker group
// (GetWorkerGroupDesiredReplicas in its util.go), and for how many of them places
// are kept: a cluster that was admitted at the maximum of Ray's autoscaler may
// come back to it. The API server has filled in the defaults.
func sizesOf(u *unstructured.Unstructured) (sizes, keeps map[string]int) {
	autoscaled, _, _ := unstructured.NestedBool(u.Object, "spec", "enableInTreeAutoscaling") // absent reads as false
	atMaximum := autoscaled && u.GetAnnotations()[kube.AutoscalingKey] != ray.AtMinimum
	groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "workerGroupSpecs") // absent reads as empty
	sizes, keeps = map[string]int{}, map[string]int{}
	for _, item := range groups {
		group, ok := item.(map[string]any)
		if !ok {
			continue
		}
		number := func(field string, otherwise int64) int64 {
			if value, found, err := unstructured.NestedInt64(group, field); found && err == nil {
				return value
			}
			return otherwise
		}
		least := number("minReplicas", 0)
		most := number("maxReplicas", math.MaxInt32)
		replicas := min(max(number("replicas", least), least), most)
		if suspended, _ := group["suspend"].(bool); suspended {
			replicas = 0
		}
		kept := replicas
		if atMaximum {
			kept = most
		}
		name, _ := group["groupName"].(string)
		hosts := number("numOfHosts", 1)
		sizes[name], keeps[name] = int(replicas*hosts), int(kept*hosts)
	}
	return sizes, keeps
}

// troubleOf returns why KubeRay cannot create pods: the condition ReplicaFailure
// of a RayCluster, which a RayJob and a RayService repeat of
// their own. It has the error of the API server, such as a service account that
// does not exist.
func troubleOf(u *unstructured.Unstructured) string {
	for _, path := range [][]string{
		{"status", "conditions"}, {"status", "rayClusterStatus", "conditions"},
		{"status", "pendingServiceStatus", "rayClusterStatus", "conditions"}, {"status", "activeServiceStatus", "rayClusterStatus", "conditions"},
	} {
		conditions, _, _ := unstructured.NestedSlice(u.Object, path...) // absent reads as empty
		for _, c := range conditions {
			condition, ok := c.(map[string]any)
			if ok && condition["type"] == "ReplicaFailure" && condition["status"] == "True" {
				return strings.ReplaceAll(fmt.Sprint(condition["message"]), "\n", ": ")
			}
		}
	}
	return ""
}

// outcomeOf reads a RayJob's status. Complete and Failed are where KubeRay ends
// (IsJobDeploymentTerminal in its rayjob_types.go); from ValidationFailed it
// never goes on. A stopped job ends as Complete and is no success.
func outcomeOf(u *unstructured.Unstructured) (outcome, message string) {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(u.Object, "status", name) // absent reads as empty
		return value
	}
	deployment, job := field("jobDeploymentStatus"), field("jobStatus")
	switch deployment {
	case "Complete":
		if job == "SUCCEEDED" {
			outcome = event.OutcomeSucceeded
			break
		}
		outcome = event.OutcomeFailed
	case "Failed", "ValidationFailed":
		outcome = event.OutcomeFailed
	default:
		return "", ""
	}
	message = fmt.Sprintf("RayJob %s/%s is %s", u.GetNamespace(), u.GetName(), deployment)
	if job != "" {
		message += ", its job " + job
	}
	for _, detail := range []string{field("reason"), field("message")} {
		if detail != "" {
			message += ": " + detail
		}
	}
	return outcome, message
}

// replicaLabel names, on pods of replicas of several hosts, the replica.
const replicaLabel = "ray.io/worker-group-replica-name"

func podOf(p *corev1.Pod) gang.Pod {
	attempt, _ := strconv.Atoi(p.Labels[kube.AttemptLabel]) // 0 when it is not ours
	pod := gang.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Cluster: p.Labels[kube.ClusterLabel],
		Workload: workload.ID(p.Labels[kube.WorkloadLabel]), Attempt: attempt, PodSet: p.Labels[kube.PodSetLabel], Replica: p.Labels[replicaLabel],
		Node: p.Spec.NodeName, Deleting: p.DeletionTimestamp != nil, Cleanup: p.Labels["ray.io/node-type"] == "redis-cleanup",
		GoneBy: goneBy(p), Controller: controllerOf(p),
		Ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	for _, gate := range p.Spec.SchedulingGates {
		if gate.Name == kube.PlacementGate {
			pod.Gated = true
		} else {
			pod.OtherGates = append(pod.OtherGates, gate.Name)
		}
	}
	if !pod.Gated {
		pod.Hostname = p.Spec.NodeSelector[kube.HostnameLabel]
	}
	return pod
}

// controllerOf names what makes such objects as this one.
func controllerOf(o metav1.Object) gang.Controller {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return gang.Controller{Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)}
	}
	return gang.Controller{}
}

// goneBy is the end of the grace that a deleted pod was given.
func goneBy(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	return p.DeletionTimestamp.Time
}
