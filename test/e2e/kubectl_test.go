package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/test/stack"
)

var appWrappers = schema.GroupVersionResource{Group: "workload.codeflare.dev", Version: "v1beta1", Resource: "appwrappers"}

// kubectl runs a command that must succeed.
func (w *world) kubectl(input string, arguments ...string) string {
	w.t.Helper()
	output, err := w.Kubectl(w.ctx, input, arguments...)
	if errors.Is(err, stack.ErrNoKubectl) && !requireAll {
		w.t.Skip(err)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return output
}

// kubectlFails runs a command that must fail, and returns what it says.
func (w *world) kubectlFails(input string, arguments ...string) string {
	w.t.Helper()
	output, err := w.Kubectl(w.ctx, input, arguments...)
	if errors.Is(err, stack.ErrNoKubectl) && !requireAll {
		w.t.Skip(err)
	}
	if err == nil {
		w.t.Fatalf("kubectl %q succeeded: %s", arguments, output)
	}
	return output
}

// hasInOrder checks that the words are in the text, in order, each separated from the
// last by whatever there is.
func hasInOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, word := range words {
		i := regexp.MustCompile(word).FindStringIndex(rest)
		if i == nil {
			t.Errorf("%q is not where it should be in:\n%s", word, text)
			return
		}
		rest = rest[i[1]:]
	}
}

// appWrapper waits for an AppWrapper to be as expected, and returns its status.
func (w *world) appWrapper(name string, is func(status map[string]any) bool) map[string]any {
	w.t.Helper()
	var status map[string]any
	w.until("AppWrapper "+name+" is as expected", func() bool {
		found, err := w.Dynamic.Resource(appWrappers).Namespace(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		status, _, _ = unstructured.NestedMap(found.Object, "status")
		return is(status)
	})
	return status
}

func inState(state, queueState string) func(map[string]any) bool {
	return func(status map[string]any) bool {
		return status["state"] == state && status["queuejobstate"] == queueState
	}
}

// observed collects the words of an AppWrapper as a watch shows them.
type observed struct {
	mu    sync.Mutex
	words []string
	bare  int // times at which there was no status
}

func (w *world) observe(name string) *observed {
	w.t.Helper()
	o := &observed{}
	watch, err := w.Dynamic.Resource(appWrappers).Namespace(w.Namespace).Watch(w.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			status, _, _ := unstructured.NestedMap(u.Object, "status")
			word := fmt.Sprintf("%v/%v", status["state"], status["queuejobstate"])
			o.mu.Lock()
			if len(status) == 0 {
				o.bare++
			}
			if len(o.words) == 0 || o.words[len(o.words)-1] != word {
				o.words = append(o.words, word)
			}
			o.mu.Unlock()
		}
	}()
	return o
}

func (o *observed) all() (words []string, bare int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.words), o.bare
}

// The story of the KubeRay guide and of the blog, with their commands and their
// words: the first AppWrapper is dispatched, the second is queued without a pod,
// and deleting the first starts it.
func TestAppWrappersOfMCADsGuidesByKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("kind", 1, "cpu=8", "memory=32Gi")
	first, second := w.observe("raycluster-complete"), w.observe("raycluster-complete-1")

	hasInOrder(t, w.kubectl(rayclusterComplete("raycluster-complete"), "create", "-f", "-"), "appwrapper.workload.codeflare.dev/raycluster-complete created")
	w.appWrapper("raycluster-complete", inState("Running", "Running"))
	hasInOrder(t, w.kubectl("", "describe", "appwrapper", "raycluster-complete"),
		"Canrun: +true", "Conditions:", `Last Transition Micro Time: +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`, "Status: +True", "Type: +Init",
		"Reason: +AwaitingHeadOfLine", "Type: +Queueing", `Reason: +FrontOfQueue\.`, "Type: +HeadOfLine",
		"Reason: +AppWrapperRunnable", "Status: +True", "Type: +Dispatched", "Controllerfirsttimestamp: +2", "Filterignore: +true",
		"Sender: +before manageQueueJob - afterEtcdDispatching", "State: +Running")
	hasInOrder(t, w.kubectl("", "get", "pod"), "NAME +READY +STATUS", `raycluster-complete-head-\S+ +1/1 +Running`, `raycluster-complete-small-group-worker-\S+ +1/1 +Running`)
	hasInOrder(t, w.kubectl("", "describe", "node", w.NodeName("kind", 0)), "Allocatable:", "cpu: +8", "Allocated resources:", "Resource +Requests +Limits", `cpu +6 \(75%\)`)

	hasInOrder(t, w.kubectl(rayclusterComplete("raycluster-complete-1"), "create", "-f", "-"), "created")
	status := w.appWrapper("raycluster-complete-1", inState("Pending", "Backoff"))
	hasInOrder(t, w.kubectl("", "describe", "appwrapper", "raycluster-complete-1"),
		"Type: +Init", "Reason: +AwaitingHeadOfLine", "Type: +Queueing", `Reason: +FrontOfQueue\.`, "Type: +HeadOfLine",
		`Message: +Insufficient resources to dispatch AppWrapper\.`, `Reason: +AppWrapperNotRunnable\.`, "Type: +Backoff", "Controllerfirsttimestamp: +2",
		"Queuejobstate: +Backoff", "Sender: +before ScheduleNext - setHOL", "State: +Pending", "Events:", "Normal +MusterQueued")
	conditions, _ := status["conditions"].([]any)
	last, _ := conditions[len(conditions)-1].(map[string]any)
	if message := fmt.Sprint(last["message"]); !strings.Contains(message, "cpu") || !strings.Contains(message, "2") {
		t.Errorf("it does not say what is missing: %q", message)
	}
	hasInOrder(t, w.kubectl("", "get", "appwrappers"), "NAME +STATUS .*STATE +QUEUE STATE +AGE",
		`raycluster-complete +Running .*Running +Running `, `raycluster-complete-1 +Suspended .*Pending +(HeadOfLine|Backoff) `)
	hasInOrder(t, w.kubectl("", "describe", "appwrapper", "raycluster-complete"), "Events:", "MusterAdmitted", "muster")
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "raycluster-complete-1") {
		t.Errorf("the second has pods:\n%s", pods)
	}

	hasInOrder(t, w.kubectl("", "delete", "appwrapper", "raycluster-complete"), `"raycluster-complete" deleted`)
	w.appWrapper("raycluster-complete-1", inState("Running", "Running"))
	hasInOrder(t, w.kubectl("", "get", "pods"), `raycluster-complete-1-head-\S+ +1/1 +Running`)
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "raycluster-complete-head") {
		t.Errorf("the first still has pods:\n%s", pods)
	}
	for _, o := range []*observed{first, second} {
		words, bare := o.all()
		if bare > 0 || len(words) == 0 || words[0] != "Pending/Init" {
			t.Errorf("there were %d moments without status; the words were %v", bare, words)
		}
	}
	if words, _ := second.all(); !inOrder(words, "Pending/Init", "Pending/Backoff", "Running/Running") {
		t.Errorf("the second's words were %v", words)
	}
}

func inOrder(words []string, want ...string) bool {
	for _, word := range words {
		if len(want) > 0 && word == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// Who may not create a RayCluster cannot have one created by wrapping it; and what
// cannot be a workload says so in its status.
func TestAppWrapperOfAUserWithoutRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("kind", 1, "cpu=8", "memory=32Gi")
	for _, manifest := range []string{
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: wraps}\nrules: [{apiGroups: [workload.codeflare.dev], resources: [appwrappers], verbs: [create]}]\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: wraps}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: wraps}\n" +
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]\n",
	} {
		w.kubectl(manifest, "create", "-f", "-")
	}
	w.kubectl(rayclusterComplete("hers"), "create", "-f", "-", "--as", "alice", "--validate=false")
	status := w.appWrapper("hers", inState("Failed", "Failed"))
	if why := fmt.Sprint(status["why"]); !strings.Contains(why, `user "alice" may not create rayclusters.ray.io`) {
		t.Errorf("the reason is %q", why)
	}
	w.kubectl("", "delete", "appwrapper", "hers")

	w.kubectl(strings.Replace(rayclusterComplete("nested"), "kind: RayCluster", "kind: AppWrapper", 1), "create", "-f", "-")
	status = w.appWrapper("nested", inState("Failed", "Failed"))
	if why := fmt.Sprint(status["why"]); !strings.Contains(why, "AppWrappers are not nested") {
		t.Errorf("the reason is %q", why)
	}
	w.kubectl("", "delete", "appwrapper", "nested")

	w.kubectl(rayclusterComplete("mine"), "create", "-f", "-")
	w.appWrapper("mine", inState("Running", "Running"))
	hasInOrder(t, w.kubectlFails("", "patch", "appwrapper", "mine", "--type=merge", "-p", `{"spec":{"priority":7}}`), "cannot be changed")
	hasInOrder(t, w.kubectlFails("", "annotate", "appwrapper", "mine", "--overwrite", "muster.dev/user=root"), "cannot be changed")
}

// Deleting while intake is down is not lost: the AppWrapper waits for it.
func TestAnAppWrapperDeletedWhileTheControllerIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("kind", 1, "cpu=8", "memory=32Gi")
	w.kubectl(rayclusterComplete("left"), "create", "-f", "-")
	w.appWrapper("left", inState("Running", "Running"))
	if err := w.StopService(stack.Intake); err != nil {
		t.Fatal(err)
	}
	w.kubectl("", "delete", "appwrapper", "left", "--wait=false")
	if err := w.StartService(w.ctx, stack.Intake); err != nil {
		t.Fatal(err)
	}
	w.kubectl("", "wait", "--for=delete", "appwrapper/left", "--timeout=60s")
	if pods := w.kubectl("", "get", "pods"); !strings.Contains(pods, "No resources found") {
		t.Errorf("pods are left:\n%s", pods)
	}
}
