package security

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// flood is how many AppWrappers one tenant creates at once.
var flood = flag.Int("flood", 300, "AppWrappers that a tenant creates in TestManyAppWrappersDelayNoOtherTenant, such as 10000")

const (
	// honestMost bounds the start of another tenant's job meanwhile.
	honestMost = 30 * time.Second
	// writesMost bounds Muster's writes for each AppWrapper: its finalizer, and its
	// states until it waits.
	writesMost = 5
	// keptAnyway bounds the memory that Muster may take however few the AppWrappers are, and
	// keptEach that for each of them.
	keptAnyway, keptEach = 8 << 20, 64 << 10
	// atOnce is how many objects a tenant creates at the same time.
	atOnce = 16
)

// rivals are a tenant who attacks by the objects of its namespace, and one who does
// not know of that.
type rivals struct {
	*tenants
	hostile, honest string // namespaces
	attacker        dynamic.ResourceInterface
	changes         metadata.ResourceInterface // the attacker's, without the objects' content
}

func newRivals(t *testing.T) *rivals {
	t.Helper()
	id := uuid.NewString()[:8]
	r := &rivals{hostile: "hostile-" + id, honest: "honest-" + id}
	r.tenants = newStack(t, stack.Options{Queues: []queuemanager.Queue{
		{Name: "hostile", Namespaces: []string{r.hostile}}, {Name: "honest", Namespaces: []string{r.honest}},
	}})
	if err := r.AddNodes(t.Context(), "cpu", 2, "cpu=32", "memory=64Gi", "nvidia.com/gpu=2"); err != nil {
		t.Fatal(err)
	}
	all := []string{"create", "get", "patch", "delete"}
	config := r.configOf(r.hostile, "hostile-"+id,
		rbacv1.PolicyRule{APIGroups: []string{"workload.codeflare.dev"}, Resources: []string{"appwrappers"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"batch", ""}, Resources: []string{"jobs", "configmaps"}, Verbs: all},
	)
	r.attacker = dynamic.NewForConfigOrDie(config).Resource(appWrappers).Namespace(r.hostile)
	r.changes = metadata.NewForConfigOrDie(config).Resource(appWrappers).Namespace(r.hostile)
	return r
}

// wrapper is an AppWrapper of a Job that asks for a GPU, with so much text beside it.
func (r *rivals) wrapper(name string, text int) *unstructured.Unstructured {
	components := fmt.Sprintf("[{template: {apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {template: {spec: {restartPolicy: Never, "+
		"containers: [{name: a, image: i, resources: {requests: {nvidia.com/gpu: \"1\"}, limits: {nvidia.com/gpu: \"1\"}}}]}}}}}", name)
	if text > 0 {
		components += fmt.Sprintf(", {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {text: %s}}}", name, strings.Repeat("a", text))
	}
	object := &unstructured.Unstructured{}
	manifest := fmt.Sprintf("apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: %s, labels: {muster.dev/queue-name: hostile}}\nspec: {components: %s]}\n", name, components)
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		r.t.Fatal(err)
	}
	return object
}

// attack creates an AppWrapper, as soon as the attacker's rights count.
func (r *rivals) attack(name string, text int) {
	r.t.Helper()
	r.until("creation of "+name, func() bool {
		_, err := r.attacker.Create(r.t.Context(), r.wrapper(name, text), metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) { // created by a try that had no answer
			return true
		}
		if !busy(err) && !strings.Contains(err.Error(), "is forbidden: User") {
			r.t.Fatal(err)
		}
		return false
	})
}

// runs has the honest tenant run a RayJob within a time and returns how long its start
// took. It watches the object's metadata: asking again and again is load, too.
func (r *rivals) runs(name string, most time.Duration) time.Duration {
	r.t.Helper()
	began := time.Now()
	manifest := stack.With(stack.Labelled(stack.RayJob(name, 1, 0, "SUCCEEDED", "10m"), "muster.dev/queue-name", "honest"), map[string]any{"suspend": true})
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), most)
	defer cancel()
	r.until("creation of "+name, func() bool {
		_, err := r.Dynamic.Resource(rayJobs).Namespace(r.honest).Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !busy(err) && !apierrors.IsAlreadyExists(err) {
			r.t.Fatal(err)
		}
		return !busy(err)
	})
	jobs := r.Metadata.Resource(rayJobs).Namespace(r.honest)
	var created *metav1.PartialObjectMetadata
	r.until("an answer about "+name, func() (answered bool) {
		var err error
		if created, err = jobs.Get(ctx, name, metav1.GetOptions{}); err != nil && !busy(err) {
			r.t.Fatal(err)
		}
		return err == nil
	})
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		return jobs.Watch(ctx, o)
	}}
	state := created.GetAnnotations()["muster.dev/state"]
	runs := func(e watch.Event) (bool, error) {
		if seen, err := meta.Accessor(e.Object); err == nil { // a status is not an object
			state = seen.GetAnnotations()["muster.dev/state"]
		}
		return state == string(workload.Admitted), nil
	}
	if state == string(workload.Admitted) {
		return time.Since(began)
	}
	if _, err := watchtools.Until(ctx, created.GetResourceVersion(), watcher, runs); err != nil {
		r.t.Errorf("%s of the other tenant is %q after %s, want it to be admitted: %v", name, state, time.Since(began), err)
	}
	return time.Since(began)
}

// A tenant creates AppWrappers by the thousand while the Kubernetes controller is down, so
// that all of them wait when it starts; another one's job starts in time, Muster writes
// little for each AppWrapper, also when those before it end, and each gets its answer. It
// does not run beside other tests: it measures the memory of the whole process.
func TestManyAppWrappersDelayNoOtherTenant(t *testing.T) {
	r := newRivals(t)
	r.attack("many-0", 0) // from now on its rights count
	memory := heap()      // of all services, intake among them
	if err := r.StopService(stack.Intake); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	began := time.Now()
	for i := 1; i < *flood; i++ {
		object := r.wrapper(fmt.Sprintf("many-%d", i), 0)
		group.Go(func() error {
			_, err := r.attacker.Create(t.Context(), object, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	created, writes := time.Since(began), r.writes()
	began = time.Now()
	if err := r.StartService(t.Context(), stack.Intake); err != nil {
		t.Fatal(err)
	}
	started := time.Since(began)
	took := r.runs("honest", honestMost)
	phases := r.answered(*flood)
	answered := time.Since(began)
	t.Logf("%d AppWrappers created in %s; intake started in %s; the other tenant's job ran after %s; all answered after %s: %v; %d writes",
		*flood, created, started, took, answered, phases, r.writes()-writes)
	for i := range 3 { // what waits says the same after each change of capacity
		r.ends(fmt.Sprintf("again-%d", i))
	}
	each := float64(r.writes()-writes) / float64(*flood)
	kept := heap() - memory
	t.Logf("%.1f writes, and %d bytes of memory, for each", each, kept/int64(*flood))
	if each > writesMost {
		t.Errorf("Muster writes each AppWrapper %.1f times, want %d at most", each, writesMost)
	}
	if most := keptAnyway + int64(*flood)*keptEach; kept > most {
		t.Errorf("the services keep %d bytes of %d AppWrappers, want %d at most", kept, *flood, most)
	}
}

// unseen is what the definition of AppWrappers has each say until Muster says more.
const unseen = "not reconciled yet"

// answered waits until the number of AppWrappers has a status, and returns
// how many are in which phase.
func (r *rivals) answered(number int) (phases map[string]int) {
	r.t.Helper()
	poll := time.NewTicker(time.Second + time.Duration(number)*time.Millisecond/2) // reading all of them is load, too
	defer poll.Stop()
	deadline := time.After(patience + time.Duration(number)*400*time.Millisecond)
	for {
		list, err := r.Dynamic.Resource(appWrappers).Namespace(r.hostile).List(r.t.Context(), metav1.ListOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		phases = map[string]int{}
		without := 0
		for _, item := range list.Items {
			phase, _, _ := unstructured.NestedString(item.Object, "status", "phase") // absent reads as empty
			if phases[phase]++; strings.Contains(fmt.Sprint(item.Object["status"]), unseen) {
				without++
			}
		}
		if without == 0 && len(list.Items) >= number {
			return phases
		}
		select {
		case <-poll.C:
		case <-deadline:
			r.t.Fatalf("%d of %d AppWrappers have no answer", without, number)
		}
	}
}

// ends deletes an AppWrapper that was admitted and has not ended, and waits until one
// more is admitted. Only what is admitted has a Job.
func (r *rivals) ends(why string) {
	r.t.Helper()
	admitted := func() (all map[string]bool, live []string) {
		list, err := r.Kube.BatchV1().Jobs(r.hostile).List(r.t.Context(), metav1.ListOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		all = map[string]bool{}
		for _, item := range list.Items {
			if all[item.Name] = true; item.Status.CompletionTime == nil && item.DeletionTimestamp == nil {
				live = append(live, item.Name)
			}
		}
		return all, live
	}
	var before map[string]bool
	var live []string
	r.until("one is admitted: "+why, func() bool { before, live = admitted(); return len(live) > 0 })
	if err := r.attacker.Delete(r.t.Context(), live[0], metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.until("one more is admitted: "+why, func() bool {
		now, _ := admitted()
		for name := range now {
			if !before[name] {
				return true
			}
		}
		return false
	})
}

var patches = regexp.MustCompile(`(?m)^apiserver_request_total\{[^}]*resource="appwrappers"[^}]*verb="PATCH"[^}]*\} (\S+)$`)

// writes returns how often AppWrappers of the cluster were patched.
func (r *rivals) writes() int {
	r.t.Helper()
	text, err := r.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	total := 0.0
	for _, match := range patches.FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			r.t.Fatal(err)
		}
		total += value
	}
	return int(total)
}

// storm repeats something at a pace, several at a time, until the test ends or stop is
// called, which returns how often in a second it was done. An API server that has too much
// to do may refuse a round.
func (r *rivals) storm(pace time.Duration, again func(ctx context.Context, i int) error) (stop func() float64) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var done atomic.Int64
	stopped, began, first := make(chan float64, 1), time.Now(), make(chan struct{}, 1)
	go func() {
		var group errgroup.Group
		group.SetLimit(atOnce)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for i := 0; ; i++ {
			group.Go(func() error {
				switch err := again(ctx, i); {
				case err == nil:
					if done.Add(1) == 1 {
						first <- struct{}{}
					}
				case ctx.Err() != nil, busy(err), apierrors.IsConflict(err): // with another round of the storm
				default:
					r.t.Errorf("round %d of the storm: %v", i, err)
				}
				return nil
			})
			select {
			case <-tick.C:
			case <-ctx.Done():
				_ = group.Wait() // no round returns an error
				stopped <- float64(done.Load()) / time.Since(began).Seconds()
				return
			}
		}
	}()
	select {
	case <-first:
	case <-time.After(stormMost):
	}
	return func() float64 { cancel(); return <-stopped }
}

// busy reports whether the API server refuses a request because it has too much to do.
func busy(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// heap is what is alive of the memory of the test's process, with all services in it.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
