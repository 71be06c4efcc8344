package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// cluster is an API server whose answers a test sets, and the cache of it. What is
// not set is not there.
type cluster struct {
	watchesRequests bool
	objects         map[string]*kubernetes.Object // Ray objects by name
	uncached        map[string]bool               // names that the cache does not show yet
	items           map[bundle.Identity]*kubernetes.Wrapped
	unserved        string            // an apiVersion of which no kind is known
	answers         map[string]error  // by verb and name
	denied          map[string]string // why the user may not create the object, by name
	lacking         map[string]string // why the dispatcher may not, by name
	left            kubernetes.Left
	leftErr         error
	pods            []gang.Pod
	clusters        []kubernetes.Object
	listed          []kubernetes.Object // what the cache lists of Ray objects
	orphans         []gang.Pod
	owned           map[string][]gang.Pod
	others          []gang.Pod
	above           map[string]string // UIDs
	asked           func(uid string)  // called for each question for what is above; may be nil
	deleted         []string          // names
	gaveUp          []string          // sizes and pods
	created         []string          // names
	pinned          map[string]string // hostname by name of the pod
	finalized       map[string]bool   // names of pods that do not go
	frozen          bool              // the cache does not show what is pinned
	quotas          []gang.Quota      // of the namespace
	read            int               // how often the quotas were
	write           func()            // called before and after each write; may be nil
}

func (c *cluster) answer(verb, name string) error { return c.answers[verb+" "+name] }

// do is one write: the process may die before it and after it.
func (c *cluster) do(write func()) {
	if c.write != nil {
		c.write()
		defer c.write()
	}
	write()
}

func exists(name string) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "things"}, name)
}

// stamped reads what Muster has written into a manifest.
func stamped(manifest json.RawMessage) (name string, o kubernetes.Object) {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(manifest, &object); err != nil {
		panic(err)
	}
	meta := object.Metadata
	attempt, _ := strconv.Atoi(meta.Labels[kube.AttemptLabel])
	return meta.Name, kubernetes.Object{
		Namespace: meta.Namespace, Name: meta.Name, UID: "uid-" + meta.Name, Workload: workload.ID(meta.Labels[kube.WorkloadLabel]),
		Attempt: attempt, Stamped: true,
	}
}

func (c *cluster) Create(_ context.Context, kind, _ string, manifest json.RawMessage) (string, error) {
	name, object := stamped(manifest)
	object.Kind = kind
	if err := c.answer("create", name); err != nil {
		return "", err
	}
	if c.objects[name] != nil {
		return "", exists(name)
	}
	c.do(func() { c.objects[name], c.created = &object, append(c.created, name) })
	return object.UID, nil
}

func (c *cluster) Get(_ context.Context, _, _, name string) (*kubernetes.Object, error) {
	return c.objects[name], c.answer("get", name)
}

func (c *cluster) Delete(_ context.Context, o kubernetes.Object) error {
	if err := c.answer("delete", o.Name); err != nil {
		return err
	}
	c.do(func() { c.deleted = append(c.deleted, o.Name); delete(c.objects, o.Name) })
	return nil
}

func (c *cluster) DeletePod(_ context.Context, pod gang.Pod, force bool) error {
	name := pod.Name
	if force {
		name += " by force"
	}
	if err := c.answer("delete", pod.Name); err != nil {
		return err
	}
	c.do(func() {
		c.deleted = append(c.deleted, name)
		if c.finalized[pod.Name] {
			return
		}
		delete(c.items, bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name})
	})
	return nil
}

func (c *cluster) Announce(_ context.Context, o kubernetes.Object, at time.Time) error {
	c.do(func() { c.objects[o.Name].EvictingAt = at.UTC().Format(time.RFC3339) })
	return nil
}

func (c *cluster) GiveUp(_ context.Context, o kubernetes.Object, sizes map[string]int, pods map[string][]string) error {
	c.do(func() {
		c.gaveUp = append(c.gaveUp, fmt.Sprintf("%v %v", sizes, pods))
		for name, size := range sizes {
			c.objects[o.Name].Sizes[name] = size
		}
	})
	return nil
}

func (c *cluster) Remaining(context.Context, workload.ID, string) (kubernetes.Left, error) {
	return c.left, c.leftErr
}

func (c *cluster) Pin(_ context.Context, pin gang.Pin) error {
	if err := c.answer("pin", pin.Pod.Name); err != nil {
		return err
	}
	c.do(func() {
		if c.pinned == nil {
			c.pinned = map[string]string{}
		}
		c.pinned[pin.Pod.Name] = pin.Hostname
		for i := range c.pods {
			if c.pods[i].UID == pin.Pod.UID && !c.frozen {
				c.pods[i].Gated, c.pods[i].Hostname = false, pin.Hostname
			}
		}
	})
	return nil
}

func (c *cluster) Quotas(context.Context, string, []gang.Pod) ([]gang.Quota, error) {
	c.read++
	return c.quotas, c.answer("quotas", "n")
}

func (c *cluster) OrphanedPods(context.Context, workload.ID, []gang.Pod) ([]gang.Pod, error) {
	return c.orphans, c.answer("orphans", "w")
}

func (c *cluster) Release(_ context.Context, _, uid string, manifest json.RawMessage) (bool, error) {
	name, object := stamped(manifest)
	if err := c.answer("release", name); err != nil {
		return false, err
	}
	held := c.objects[name]
	if held == nil || held.UID != uid {
		return false, nil
	}
	c.do(func() { held.Workload, held.Attempt, held.Stamped = object.Workload, object.Attempt, true })
	return true, nil
}

// unknown is the answer where the kind is not served; nil where it is.
func (c *cluster) unknown(version, kind string) error {
	if c.unserved == "" || version != c.unserved {
		return nil
	}
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}, SearchedVersions: []string{version}}
}

func (c *cluster) CreateItem(_ context.Context, id bundle.Identity, manifest json.RawMessage) (string, error) {
	if err := c.answer("create", id.Name); err != nil {
		return "", err
	}
	if err := c.unknown(id.APIVersion, id.Kind); err != nil {
		return "", err
	}
	if c.items[id] != nil {
		return "", exists(id.Name)
	}
	_, object := stamped(manifest)
	object.Kind = id.Kind
	var content map[string]any
	if err := json.Unmarshal(manifest, &content); err != nil {
		return "", err
	}
	c.do(func() {
		c.items[id], c.created = &kubernetes.Wrapped{Object: object, Content: content}, append(c.created, id.Name)
	})
	return object.UID, nil
}

func (c *cluster) GetItem(_ context.Context, id bundle.Identity) (*kubernetes.Wrapped, error) {
	return c.items[id], c.answer("get", id.Name)
}

func (c *cluster) DeleteItem(_ context.Context, id bundle.Identity, uid string) (bool, error) {
	if err := c.answer("delete", id.Name); err != nil {
		return false, err
	}
	if found := c.items[id]; found == nil || found.UID != uid {
		return true, nil
	}
	c.do(func() { c.deleted = append(c.deleted, id.Name); delete(c.items, id) })
	return false, nil
}

func (c *cluster) Labelled(_ context.Context, version, kind, namespace string, of workload.ID) (found []kubernetes.Wrapped, err error) {
	if err := c.answer("list", kind); err != nil {
		return nil, err
	}
	if err := c.unknown(version, kind); err != nil {
		return nil, err
	}
	for id, object := range c.items {
		if id.APIVersion == version && id.Kind == kind && (namespace == "" || id.Namespace == namespace) && (of == "" || object.Workload == of) {
			found = append(found, *object)
		}
	}
	return found, nil
}

func (c *cluster) Placeholders(_ context.Context, namespace string, of workload.ID) (pods []kubernetes.Placeholder, err error) {
	for id, item := range c.items {
		if id.Kind != "Pod" || namespace != "" && id.Namespace != namespace {
			continue
		}
		_, labels := metadataOf(item.Content)
		pod := kubernetes.Placeholder{Namespace: id.Namespace, Name: id.Name, UID: item.UID, Workload: workload.ID(labels[kube.PlaceholderLabel]), Shown: item.Content["shown"] != nil}
		annotations, _ := item.Content["metadata"].(map[string]any)["annotations"].(map[string]any)
		pod.Request, _ = annotations[requestOfKey].(string)
		pod.Node, _ = item.Content["node"].(string)
		pod.Forged = item.Content["spec"].(map[string]any)["schedulerName"] != kubernetes.PlaceholderScheduler
		if labels[kube.PlaceholderLabel] == "" {
			continue
		}
		if of == "" || pod.Workload == of {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b kubernetes.Placeholder) int { return strings.Compare(a.Namespace+a.Name, b.Namespace+b.Name) })
	return pods, c.answer("list", "placeholders")
}

func metadataOf(content map[string]any) (name string, labels map[string]string) {
	metadata, labels := content["metadata"].(map[string]any), map[string]string{}
	for key, value := range labelsOf(metadata) {
		labels[key] = value.(string)
	}
	return metadata["name"].(string), labels
}

func labelsOf(metadata map[string]any) map[string]any {
	labels, _ := metadata["labels"].(map[string]any)
	return labels
}

func (c *cluster) ShowPlaceholder(_ context.Context, pod kubernetes.Placeholder) error {
	if err := c.answer("show", pod.Name); err != nil {
		return err
	}
	c.do(func() {
		c.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}].Content["shown"] = true
	})
	return nil
}

func (c *cluster) Allowed(_ context.Context, _ workload.Identity, id bundle.Identity) (string, error) {
	return c.denied[id.Name], c.answer("allow", id.Name)
}

func (c *cluster) Lacks(_ context.Context, id bundle.Identity) (string, error) {
	return c.lacking[id.Name], c.answer("find", id.Name)
}

func (c *cluster) Object(_, _, name string) *kubernetes.Object {
	if c.uncached[name] {
		return nil
	}
	return c.objects[name]
}
func (c *cluster) Pods(workload.ID) []gang.Pod           { return c.pods }
func (c *cluster) Objects() []kubernetes.Object          { return c.listed }
func (c *cluster) RayClusters(objects []string) []string { return objects }
func (c *cluster) Workloads() (ids []workload.ID) {
	for _, pod := range c.pods {
		ids = append(ids, pod.Workload)
	}
	return ids
}
func (c *cluster) Made(owners []string) (pods []gang.Pod) {
	for _, uid := range owners {
		pods = append(pods, c.owned[uid]...)
	}
	return pods
}
func (c *cluster) PodsIn(string) (ours, others []gang.Pod) { return c.pods, c.others }
func (c *cluster) ControllerOf(_ context.Context, _ string, of gang.Controller) (string, error) {
	if c.asked != nil {
		c.asked(of.UID)
	}
	return c.above[of.UID], nil
}
func (c *cluster) Clusters(workload.ID) []kubernetes.Object { return c.clusters }

func (c *cluster) WatchesRequests() bool { return c.watchesRequests }
