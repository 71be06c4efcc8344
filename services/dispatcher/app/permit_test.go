package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// wrapped makes the command to create objects of which a config map comes first.
func (w *world) wrapped(id workload.ID, objects ...string) event.GangCommand {
	w.t.Helper()
	items := []bundle.Item{{Object: json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + string(id) + `"}}`)}}
	for _, object := range objects {
		items = append(items, bundle.Item{Object: json.RawMessage(object), MakesPods: true})
	}
	manifest, err := bundle.Bundle{Items: items}.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	gang := w.gang(id, string(id), workers{1})
	gang.Kind, gang.Manifest, gang.PodSets, gang.Placements = "AppWrapper", manifest, nil, nil
	return gang
}

// Rules and rights are asked again for every object before the first one is created:
// of a bundle that has one object too many, nothing is.
func TestEveryObjectIsPermittedBeforeAnyIsCreated(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "permit", 1), newStep(t)
	w.run(d)
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}`
	const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	for id, c := range map[string]struct {
		object string
		change func(*event.GangCommand)
		want   string
	}{
		"token":    {`{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"x"}}`, nil, "Kubernetes gives rights for it"},
		"network":  {`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"}}`, nil, `kind: is "NetworkPolicy.networking.k8s.io"`},
		"external": {`{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"externalIPs":["10.0.0.1"]}}`, nil, "spec.externalIPs: is set"},
		"path":     {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"../../x"}}`, nil, `"../../x" may not contain '/'`},
		"pods":     {pod, nil, "not allowed by the queue's pod policy: spec: privileged"},
		"own-right": {`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x"}}`,
			func(g *event.GangCommand) { g.ObjectPolicy.Kinds = []string{"default", "Lease.coordination.k8s.io"} },
			"the dispatcher lacks a right: it may not create leases.coordination.k8s.io in namespace permit"},
		"identity": {job, func(g *event.GangCommand) {
			g.Identity = &workload.Identity{User: "mallory", Groups: []string{"system:authenticated"}}
		},
			`user "mallory" may not create configmaps in namespace permit`},
	} {
		t.Run(id, func(t *testing.T) {
			gang := w.wrapped(workload.ID("permit-"+id), c.object)
			if c.change != nil {
				c.change(&gang)
			}
			d.command(gang)
			status := d.await(gang.Workload, "refused", func(s event.GangStatus) bool { return s.Refused })
			if !strings.Contains(status.Message, c.want) || status.Created {
				t.Errorf("status is %+v, want the reason %q", status, c.want)
			}
			list, err := w.core.CoreV1().ConfigMaps(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "muster.dev/workload=" + string(gang.Workload)})
			if err != nil || len(list.Items) > 0 {
				t.Errorf("there are %d objects of it, %v", len(list.Items), err)
			}
		})
	}
}

// A RayCluster of a submitter that the queue binds to a user of Kubernetes is created
// when that user may create it, and fails with the API server's answer when not.
func TestTheRightsOfTheBoundUserCount(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "bound", 1), newStep(t)
	w.run(d)
	refused := w.gang("bound-no", "refused", workers{1})
	refused.Identity = &workload.Identity{User: "alice", Groups: []string{"system:authenticated"}}
	d.command(refused)
	status := d.await(refused.Workload, "refused", func(s event.GangStatus) bool { return s.Refused })
	if want := `user "alice" may not create rayclusters.ray.io in namespace bound`; !strings.Contains(status.Message, want) {
		t.Errorf("the reason is %q, want %q", status.Message, want)
	}
	if object := w.object("RayCluster", "refused"); object != nil {
		t.Errorf("the object was created: %v", object)
	}

	rules := []rbacv1.PolicyRule{{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"create"}}}
	if _, err := w.core.RbacV1().Roles(w.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "trains"}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.core.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "trains"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "trains"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "trainers"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("the right of the group", func() bool {
		gang := w.gang("bound-yes", "granted", workers{1})
		gang.Identity = &workload.Identity{User: "alice", Groups: []string{"trainers", "system:authenticated"}}
		d.command(gang)
		return w.object("RayCluster", "granted") != nil
	})
}
