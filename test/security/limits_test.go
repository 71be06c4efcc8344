package security

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

var appWrappers = schema.GroupVersionResource{Group: "workload.codeflare.dev", Version: "v1beta2", Resource: "appwrappers"}

// A gang of more than the queue allows is refused at every interface, with what was
// asked, the most, and what to do.
func TestNoWorkloadPassesTheQueuesLimits(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{Limits: workload.Limits{
		CheckpointGrace: workload.Duration(time.Minute), MaxRunTime: workload.Duration(time.Hour), SuccessTTL: workload.Duration(time.Minute), Pods: 3,
	}})
	user := w.as("greedy-"+w.Pool,
		rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"create", "get"}},
		rbacv1.PolicyRule{APIGroups: []string{"workload.codeflare.dev"}, Resources: []string{"appwrappers"}, Verbs: []string{"create", "get"}},
	)
	queued := func(manifest string) string { return stack.Labelled(manifest, "muster.dev/queue-name", "default") }
	const less = "; ask for that or less"
	grace := stack.Annotated(stack.RayCluster("grace", 1, 0), "muster.dev/checkpoint-grace", "87600h")
	const graceRefused = `is 87600h0m0s, but queue "default" allows 1m0s at most` + less

	for name, c := range map[string]struct{ manifest, want string }{
		"grace":    {grace, graceRefused},
		"run time": {stack.Annotated(stack.RayCluster("long", 1, 0), "muster.dev/max-run-time", "2h"), `is 2h0m0s, but queue "default" allows 1h0m0s at most` + less},
		"pods":     {stack.RayCluster("many", 3, 0), `are 4, but queue "default" allows a workload 3 at most; ask for fewer`},
	} {
		t.Run(name, func(t *testing.T) {
			if why := w.refused(w.submit(c.manifest)); !strings.Contains(why, c.want) {
				t.Errorf("%s over NATS: refused because %q, want %q", name, why, c.want)
			}
		})
	}
	w.create(user, queued(grace))
	w.hasState("grace", "rejected", graceRefused)
	w.create(user, queued(stack.RayCluster("many", 3, 0)))
	w.hasState("many", "rejected", `are 4, but queue "default" allows a workload 3 at most`)

	why := w.wrapped(user, fmt.Sprintf(`apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata:
  name: stays
  labels: {muster.dev/queue-name: default}
  annotations: {workload.codeflare.dev.appwrapper/successTTLDuration: 2h}
spec: {components: [{template: %s}]}
`, stack.RayCluster("stays", 1, 0)))
	if want := `is 2h0m0s, but queue "default" allows 1m0s at most` + less; !strings.Contains(why, want) {
		t.Errorf("an AppWrapper that stays: refused because %q, want %q", why, want)
	}
}

// wrapped creates an AppWrapper as the client's user, and returns why it is refused.
func (w *tenants) wrapped(client dynamic.Interface, manifest string) string {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		w.t.Fatal(err)
	}
	wrappers := client.Resource(appWrappers).Namespace(w.Namespace)
	w.until("creation of "+object.GetName(), func() bool {
		_, err := wrappers.Create(w.t.Context(), object, metav1.CreateOptions{})
		if err != nil && !strings.Contains(err.Error(), "is forbidden: User") {
			w.t.Fatal(err)
		}
		return err == nil
	})
	var why string
	w.until(object.GetName()+" is refused", func() bool {
		found, err := wrappers.Get(w.t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		why = fmt.Sprint(found.Object["status"])
		return strings.Contains(why, "rejected:true") || strings.Contains(why, "allows") || strings.Contains(why, "in clear")
	})
	return why
}
