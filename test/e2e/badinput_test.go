package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// exitRejected is the command line's exit code for a rejected submission.
const exitRejected = 4

// muster runs the command line against the world's NATS.
func (w *world) muster(arguments ...string) (output string, exit int) {
	w.t.Helper()
	binary, err := filepath.Abs("../../bin/muster")
	if err != nil {
		w.t.Fatal(err)
	}
	command := exec.CommandContext(w.ctx, binary, append(arguments, "--nats-url", w.NATSURL)...)
	out, err := command.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		w.t.Fatalf("run muster: %v; `make build` builds it", err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// file writes a manifest for the command line.
func (w *world) file(content string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// Each kind of bad input ends in an event with the reason and, from the command
// line, in the same reason and an exit code that is not zero; the services live
// on.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, queuemanager.Queue{Name: "default", Namespaces: []string{"e2e-bad-input"}})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	good := stack.RayCluster("good", 1, 1)
	with := func(old, replacement string) string {
		changed := strings.Replace(good, old, replacement, 1)
		if changed == good {
			t.Fatalf("the manifest has no %s", old)
		}
		return changed
	}
	for _, c := range []struct{ name, queue, manifest, want string }{
		{"not YAML", "default", "{ this: is: no: manifest", "YAML"},
		{"a wrong kind", "default", with(`"kind":"RayCluster"`, `"kind":"Deployment"`), `is "Deployment"; want RayCluster, RayJob, RayService, AppWrapper or PodSets`},
		{"an unknown queue", "nowhere", good, `queue "nowhere" does not exist or does not admit this submitter`},
		{"no pods", "default", `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"x"},"spec":{}}`, "headGroupSpec"},
		{"a negative count", "default", with(`"replicas":1`, `"replicas":-1`), "replicas"},
		{"an absurd count", "default", stack.RayCluster("good", 99_999_999, 1), "at most"},
		{"a count that is no integer", "default", with(`"replicas":1`, `"replicas":1e30`), "replicas"},
		{"a quantity that does not parse", "default", with(`"memory":"1Gi"`, `"memory":"one gig"`), `one gig`},
		{"a quantity that overflows", "default", with(`"memory":"1Gi"`, `"memory":"99999999999999999999Ei"`), "memory"},
		{"a negative quantity", "default", with(`"cpu":"1"`, `"cpu":"-1"`), "cpu"},
		{"a name that Kubernetes refuses", "default", with(`"name":"good"`, `"name":"Not_A_Name"`), "Not_A_Name"},
		{"a foreign namespace", "default", with(`"metadata":{`, `"metadata":{"namespace":"kube-system",`), `namespace "kube-system" does not belong to queue "default"`},
		{"a privileged container", "default", with(`"name":"ray-worker"`, `"name":"ray-worker","securityContext":{"privileged":true}`), "not allowed by the queue's pod policy: spec.workerGroupSpecs[0].template.spec: privileged (container \"ray-worker\" must not set securityContext.privileged=true)"},
		{"too large", "default", with(`"image":"`, `"image":"`+strings.Repeat("x", event.MaxSubmission)), fmt.Sprint(event.MaxSubmission)},
		{"YAML aliases", "default", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: &m {name: x}\nspec: *m\n", "alias"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.publish(c.queue, c.name, []byte(c.manifest))
			reason := w.rejected(id).Reason
			if !strings.Contains(reason.Message, c.want) {
				t.Errorf("%s: the reason is %q, want it to say %q", c.name, reason.Message, c.want)
			}
			output, exit := w.muster("submit", "-f", w.file(c.manifest), "--queue", c.queue)
			if exit == 0 || !strings.Contains(output, c.want) {
				t.Errorf("%s: muster submit says %q with exit code %d, want %q", c.name, output, exit, c.want)
			}
		})
	}
	w.reaches(w.submit(good), workload.Running)
}

func (w *world) rejected(id workload.ID) *event.WorkloadRejected {
	w.t.Helper()
	return await(w, fmt.Sprintf("rejection of workload %s", id), func(e *event.WorkloadRejected) bool { return e.Workload == id })
}

func TestTheSameIDTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	first := w.file(stack.RayCluster("once", 1, 1))
	for range 2 {
		if output, exit := w.muster("submit", "-f", first, "--id", "the-id", "--wait=running", "--timeout=30s"); exit != 0 {
			t.Errorf("submitting the same content: %q, exit code %d", output, exit)
		}
	}
	output, exit := w.muster("submit", "-f", w.file(stack.RayCluster("other", 1, 1)), "--id", "the-id")
	if exit != exitRejected || !strings.Contains(output, "other content") {
		t.Errorf("submitting other content under the same id: %q, exit code %d", output, exit)
	}
	output, exit = w.muster("submit", "-f", first, "--id", "the-id", "--queue", "nowhere")
	if exit != exitRejected || !strings.Contains(output, `queue "nowhere" does not exist`) {
		t.Errorf("submitting the same to another queue: %q, exit code %d", output, exit)
	}
	id := event.WorkloadID("muster-cli", "the-id")
	if objects := fmt.Sprint(w.objects(id)); objects != "[rayclusters/once]" {
		t.Errorf("of the workload there are %s", objects)
	}
}

// A flood of messages that cannot be read neither stops the services nor loses
// what is between it. TestBadAmongGood of intake sends ten thousand.
func TestBadMessagesBetweenGoodOnes(t *testing.T) {
	t.Parallel()
	const flood = 500
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	before := w.submit(stack.RayCluster("before", 1, 1))
	bad := []string{"", "{", "null", `{"specversion":"1.0"}`, "\x00\xff", `[7]`, "kind: RayCluster"}
	for i := range flood {
		if _, err := w.Bus.PublishEncoded("muster.submit.default", fmt.Sprintf("bad-%d", i), []byte(bad[i%len(bad)]), 0); err != nil {
			t.Fatal(err)
		}
	}
	after := w.submit(stack.RayCluster("after", 1, 1))
	w.reaches(before, workload.Running)
	w.reaches(after, workload.Running)
	w.until("every bad message has its rejection", func() bool {
		rejected := 0
		for _, e := range bustest.Heard[*event.WorkloadRejected](w.heard) {
			if e.Reason.Message != "" {
				rejected++
			}
		}
		return rejected == flood
	})
}
