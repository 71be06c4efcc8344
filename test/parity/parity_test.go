package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

// batch is how many objects the operator works on at the same time.
const batch = 50

// subject is a manifest that is predicted and created.
type subject struct {
	name, namespace string
	raw             []byte
	manifest        object
	predicted       ray.Prediction
	want            map[string]int // pods by what they are like
	// borrows names the cluster of another owner on which the job runs.
	borrows string
}

// TestParity: KubeRay's own samples and generated manifests become the pods that
// are predicted.
func TestParity(t *testing.T) {
	subjects := samples(t)
	ofSamples := len(subjects)
	for n := range *generated {
		subjects = append(subjects, &subject{name: fmt.Sprintf("generated %d of seed %d", n, *seed), raw: newGenerator(*seed, n).manifest(n)})
	}
	o := connect(t)
	kinds := map[string]int{}
	for i, s := range subjects {
		s.namespace = fmt.Sprintf("parity-%d", i)
		s.predict(t, o.profile)
		kinds[s.predicted.Kind]++
	}
	if t.Failed() {
		return
	}
	for of := range slices.Chunk(subjects, batch) {
		o.compare(of)
	}
	pods := 0
	for _, s := range subjects { // whatever has come since
		pods += o.check(s)
	}
	for _, s := range subjects {
		for _, kind := range []string{s.predicted.Kind, ray.RayCluster} {
			o.remove(s.namespace, kind)
		}
	}
	for _, s := range subjects {
		o.checkCleaner(s)
	}
	t.Logf("%d samples and %d generated manifests, of them %v: %d pods compared", ofSamples, *generated, kinds, pods)
}

func (s *subject) predict(t *testing.T, profile ray.Operator) {
	t.Helper()
	var err error
	if s.predicted, err = profile.Predict(s.raw); err != nil {
		t.Errorf("%s: %v\n%s", s.name, err, s.raw)
		return
	}
	if err := json.Unmarshal(s.predicted.Manifest, &s.manifest); err != nil {
		t.Fatal(err)
	}
	if spec, ok := s.manifest["spec"].(object); ok {
		if selector, ok := spec["clusterSelector"].(object); ok {
			s.borrows, _ = selector["ray.io/cluster"].(string)
		}
	}
	s.want = map[string]int{}
	for _, set := range s.predicted.Created {
		s.want[likeness(set.Name, set.Role, set.Template)] += set.Count
	}
}

// likeness is all that is compared of a pod.
func likeness(group, role string, t workload.Template) string {
	return fmt.Sprintf("%s %s: %s; selector %v; affinity %v; tolerations %v", role, group, t.Requests, t.NodeSelector, t.Affinity, t.Tolerations)
}

// compare creates the objects at once and waits for the pods that are predicted.
func (o *operator) compare(subjects []*subject) {
	var creating errgroup.Group
	creating.SetLimit(8)
	for _, s := range subjects {
		o.makeRoom(s.predicted.Created)
		creating.Go(func() error {
			err := o.create(s.namespace, s.manifest)
			if err == nil && s.borrows != "" {
				err = o.lend(s)
			}
			if err != nil {
				o.t.Errorf("%s is not created: %v\n%s", s.name, err, s.raw)
			}
			return nil
		})
	}
	_ = creating.Wait() // the errors are reported
	for _, s := range subjects {
		if !o.until(func() bool { return o.complete(s) }) {
			break // check tells the difference
		}
	}
}

// lend creates the cluster that a job takes for its own.
func (o *operator) lend(s *subject) error {
	pod := object{"spec": object{"containers": []any{object{"name": "ray-head", "image": "ray"}}}}
	manifest := object{
		"apiVersion": "ray.io/v1", "kind": ray.RayCluster, "metadata": object{"name": s.borrows, "namespace": s.namespace},
		"spec": object{"headGroupSpec": object{"rayStartParams": object{}, "template": pod}},
	}
	return o.createIn(s.namespace, manifest)
}

// complete reports whether as many pods as predicted are there.
func (o *operator) complete(s *subject) bool {
	want := 0
	for _, count := range s.want {
		want += count
	}
	got, _ := o.pods(s.namespace, s.borrows)
	return len(got) >= want
}

// check compares the pods that there ever were with those predicted, and returns
// how many they are.
func (o *operator) check(s *subject) int {
	gang, _ := o.pods(s.namespace, s.borrows)
	got := map[string]int{}
	for _, pod := range gang {
		requests, err := kube.Requests(pod)
		if err != nil {
			o.t.Error(err)
		}
		group, role := pod.Labels["ray.io/group"], pod.Labels["ray.io/node-type"]
		if role == "" {
			group, role = ray.SubmitterGroup, workload.RoleSubmitter
		}
		spec := pod.Spec
		spec.Tolerations = slices.DeleteFunc(slices.Clone(spec.Tolerations), byDefault)
		template, err := kube.PodTemplate(&spec)
		if err != nil {
			o.t.Error(err)
		}
		template.Requests = requests
		got[likeness(group, role, template)]++
	}
	if diff := cmp.Diff(s.want, got); diff != "" {
		o.t.Errorf("%s in namespace %s: pods differ (-predicted +created):\n%s%s\n%s", s.name, s.namespace, diff, o.why(s.namespace), s.raw)
	}
	return len(gang)
}

// checkCleaner: what cleans Redis up after a cluster, once it is deleted, fits
// where the head was.
func (o *operator) checkCleaner(s *subject) {
	tolerant := bytes.Contains(s.raw, []byte("gcsFaultToleranceOptions")) || bytes.Contains(s.raw, []byte(`ray.io/ft-enabled: "true"`)) ||
		bytes.Contains(s.raw, []byte(`"ray.io/ft-enabled":"true"`))
	if !tolerant || len(s.predicted.Created) == 0 {
		return
	}
	var cleaners []*corev1.Pod
	if !o.until(func() bool {
		_, cleaners = o.pods(s.namespace, s.borrows)
		return len(cleaners) > 0
	}) {
		o.t.Errorf("%s: nothing cleans Redis up after it", s.name)
		return
	}
	requests, err := kube.Requests(cleaners[0])
	if err != nil {
		o.t.Error(err)
	}
	for _, set := range s.predicted.PodSets {
		if set.Role == workload.RoleHead && !requests.FitsIn(set.Template.Requests) {
			o.t.Errorf("%s: the pod that cleans Redis up asks %s, and its place is of %s", s.name, requests, set.Template.Requests)
		}
	}
}

// byDefault recognizes the tolerations that the API server adds to every pod.
func byDefault(t corev1.Toleration) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Effect == corev1.TaintEffectNoExecute
}

func quantity(text string) apiresource.Quantity { return apiresource.MustParse(text) }

// samples reads every RayCluster, RayJob and RayService of the ray-operator
// module.
func samples(t *testing.T) []*subject {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatalf("find the ray-operator module: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "config", "samples")
	var found []*subject
	kinds := slices.Collect(maps.Keys(resources))
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content = bytes.ReplaceAll(content, []byte("$KSA_NAME"), []byte("to-be-replaced"))
		for _, document := range bytes.Split(append([]byte("\n"), content...), []byte("\n---")) {
			var meta metav1.PartialObjectMetadata
			if err := yaml.Unmarshal(document, &meta); err == nil && slices.Contains(kinds, meta.Kind) {
				found = append(found, &subject{name: filepath.Base(path), raw: document})
			}
		}
		return nil
	})
	if err != nil || len(found) < 60 {
		t.Fatalf("%d samples in %s, %v", len(found), root, err)
	}
	return found
}
