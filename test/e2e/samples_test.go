package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// refusedSamples are KubeRay's samples that Muster refuses, and the words of the
// reason that say why. What is not here must run, or wait for what no node has.
var refusedSamples = map[string]string{
	"ray-job.use-existing-raycluster.yaml":          "spec.clusterSelector",
	"ray-cronjob.sample.yaml":                       "past the queue",
	"ray-service.incremental-upgrade.yaml":          "spec.upgradeStrategy.type",
	"vllm/ray-service.vllm-tpu-v6e-singlehost.yaml": "serviceAccountName",
}

// sampleQueues is how many samples may have the same name: each queue has a
// namespace of its own.
const sampleQueues = 6

// KubeRay's own samples are real input: each runs, or waits or is refused with a
// true reason.
func TestKubeRaysSamples(t *testing.T) {
	t.Parallel()
	var queues []queuemanager.Queue
	for i := range sampleQueues {
		name := fmt.Sprintf("samples-%d", i)
		queues = append(queues, queuemanager.Queue{
			Name: name, Namespaces: []string{name},
			PodPolicy:    workload.PodPolicy{ServiceAccounts: []string{"*"}}, // some name one of their own
			ObjectPolicy: workload.ObjectPolicy{ServiceTypes: []string{"NodePort", "LoadBalancer"}},
		})
	}
	w := newWorld(t, queues...)
	w.nodes("big", 4, "cpu=96", "memory=512Gi", "ephemeral-storage=1Ti", "nvidia.com/gpu=8")
	samples := readSamples(t)
	ids := map[string]workload.ID{}
	namesakes := map[string]int{}
	for _, s := range samples {
		ids[s.name] = w.publish(queues[namesakes[s.object]].Name, s.name, s.manifest)
		namesakes[s.object]++
	}
	var table bytes.Buffer
	rows := tabwriter.NewWriter(&table, 0, 4, 2, ' ', 0)
	running := 0
	for _, s := range samples {
		outcome, reason := w.outcome(ids[s.name])
		fmt.Fprintf(rows, "%s\t%s\t%s\n", s.name, outcome, reason)
		words, refused := refusedSamples[s.name]
		switch outcome {
		case workload.Running, workload.Succeeded:
			running++
			if refused {
				t.Errorf("%s runs, but should be refused because of %q", s.name, words)
			}
		case workload.Queued:
			w.checkShortage(s.name, ids[s.name])
		case workload.Admitted, workload.Dispatched:
			// Its files' other documents, such as a service account, are not here.
			if !strings.Contains(reason, "not found") {
				t.Errorf("%s does not start: %s", s.name, reason)
			}
		case workload.Failed, workload.Cancelled:
			t.Errorf("%s ended as %s: %s", s.name, outcome, reason)
		case workload.Rejected:
			if !refused || !strings.Contains(reason, words) {
				t.Errorf("%s is refused: %s; expected %q", s.name, reason, words)
			}
		}
	}
	_ = rows.Flush()
	t.Logf("%d of %d samples run:\n%s", running, len(samples), table.String())
	if running < len(samples)/2 {
		t.Errorf("only %d of %d samples run", running, len(samples))
	}
}

// outcome waits until a submission runs, waits for capacity, or is refused.
func (w *world) outcome(id workload.ID) (workload.Phase, string) {
	w.t.Helper()
	settled := await(w, fmt.Sprintf("what becomes of workload %s", id), func(p event.Payload) bool {
		switch e := p.(type) {
		case *event.WorkloadRejected:
			return e.Workload == id
		case *event.WorkloadChanged:
			// On a slow machine, too, it is still starting.
			slow := e.Reason != nil && e.Reason.Kind == workload.ReasonStarting && !strings.Contains(e.Reason.Message, "not found")
			return e.ID == id && (e.Phase == workload.Running || e.Phase.Final() || e.Reason != nil && !slow)
		}
		return false
	})
	if rejected, ok := settled.(*event.WorkloadRejected); ok {
		return workload.Rejected, rejected.Reason.Message
	}
	changed := settled.(*event.WorkloadChanged)
	if changed.Reason != nil {
		return changed.Phase, changed.Reason.Message
	}
	return changed.Phase, ""
}

// checkShortage checks a reason to wait against the nodes: what it says to be
// missing is on no node.
func (w *world) checkShortage(name string, id workload.ID) {
	w.t.Helper()
	reason := w.waits(id, workload.ReasonFit, workload.ReasonNeverFits)
	short := reason.Shortage
	switch {
	case short == nil:
		w.t.Errorf("%s waits without a shortage: %s", name, reason.Message)
	case short.Eligible > 0 && short.Unplaced == short.Pods && short.Asked <= short.Largest && !lackedByAll(short):
		w.t.Errorf("%s waits although the reason says that it fits: %s", name, reason.Message)
	}
	// Others may have ended meanwhile, and left room for it.
	if left := len(w.objects(id)) + len(w.pods(id)); left > 0 && w.one(id).Phase == workload.Queued {
		w.t.Errorf("%s waits, and there are %d objects of it", name, left)
	}
}

// lackedByAll reports whether the nodes that are said to lack one resource or
// another can be all that are eligible.
func lackedByAll(short *workload.Shortage) bool {
	nodes := 0
	for _, l := range short.Lacking {
		nodes += l.Nodes
	}
	return short.Eligible > 0 && nodes >= short.Eligible
}

// sample is a Ray object of the samples of the ray-operator module.
type sample struct {
	name     string // of the file, and the place of the document in it
	object   string // kind and name
	manifest []byte
}

func readSamples(t *testing.T) []sample {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatalf("find the ray-operator module: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "config", "samples")
	var samples []sample
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		samples = append(samples, rayDocuments(relative, content)...)
		return nil
	})
	if err != nil || len(samples) < 30 {
		t.Fatalf("%d samples in %s, %v", len(samples), dir, err)
	}
	slices.SortFunc(samples, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return samples
}

func rayDocuments(file string, content []byte) []sample {
	var found []sample
	for i, document := range bytes.Split(append([]byte("\n"), content...), []byte("\n---")) {
		var meta metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &meta); err != nil || !strings.HasPrefix(meta.APIVersion, "ray.io/") {
			continue // of another kind
		}
		name := file
		if i > 0 {
			name = fmt.Sprintf("%s#%d", file, i)
		}
		found = append(found, sample{name, meta.Kind + "/" + meta.Name + meta.GenerateName, document})
	}
	return found
}
