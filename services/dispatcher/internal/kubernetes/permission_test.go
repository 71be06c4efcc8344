package kubernetes

import (
	"context"
	"errors"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/services/dispatcher/internal/permission"
)

// A Lease that is not there has no permission, and that is another thing than one without any.
func TestAMissingLeaseIsNoneWithoutAPermission(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leases []runtime.Object
		want   permission.Record
	}{
		"no lease":                   {want: permission.Record{Missing: true}},
		"a lease without permission": {leases: []runtime.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "l"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Permission{client: &Client{leases: kubefake.NewClientset(c.leases...).CoordinationV1()}, namespace: "n", name: "l"}
			if got, err := p.Permission(t.Context()); err != nil || got.Missing != c.want.Missing || got.Text != "" {
				t.Errorf("the permission is %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// A kind that cannot be listed does not hide the others, and one that the cluster does not know
// is no trouble.
func TestWhatNeedsThePermissionIsListedKindByKind(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pod := func(name string, grace *int64) runtime.Object {
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: name, UID: "u", DeletionGracePeriodSeconds: grace,
			Labels: map[string]string{kube.ClusterLabel: "c", kube.PermissionLabel: kube.PermissionNeeded, kube.WorkloadLabel: "w", kube.AttemptLabel: "2"},
		}}
		if grace != nil {
			o.DeletionTimestamp = &metav1.Time{}
		}
		return o
	}
	short, long := int64(10), int64(300)
	listing := fake.NewSimpleMetadataClient(scheme, pod("a", nil), pod("b", &short), pod("c", &long))
	unknown := map[string]bool{"rayjobs": true}
	refused := "rayservices"
	listing.PrependReactor("list", "*", func(a kubetesting.Action) (bool, runtime.Object, error) {
		switch resource := a.GetResource().Resource; {
		case unknown[resource]:
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "")
		case resource == refused:
			return true, nil, errors.New("refused")
		}
		return false, nil, nil
	})
	p := &Permission{client: &Client{cluster: "c"}, metadata: listing}
	held, err := p.Permitted(context.Background())
	if err == nil {
		t.Error("no error says that a kind could not be listed")
	}
	var slow []bool
	for _, h := range held {
		if h.Kind != permission.Pod || h.Workload != "w" || h.Attempt != 2 {
			t.Errorf("listed is %+v", h)
		}
		slow = append(slow, h.Slow)
	}
	if !slices.Equal(slow, []bool{false, false, true}) {
		t.Errorf("slow are %v, want the last of three pods", slow)
	}
	unknown[refused], unknown["rayclusters"] = true, true
	if held, err = p.Permitted(context.Background()); err != nil || len(held) != 3 {
		t.Errorf("without KubeRay %d are listed, %v", len(held), err)
	}
}
