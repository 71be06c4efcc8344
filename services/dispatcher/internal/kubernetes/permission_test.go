package kubernetes

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/services/dispatcher/internal/permission"
)

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
