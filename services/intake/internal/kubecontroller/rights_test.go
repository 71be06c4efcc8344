package kubecontroller

import (
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/manifest/bundle"
)

// asked is a client that counts what it asks the API server. Alice may create RayClusters, and Bob
// one that is called "his".
func asked(t *testing.T, now func() time.Time, bindings ...string) (c *Client, reviews, lists *atomic.Int64) {
	t.Helper()
	reviews, lists = &atomic.Int64{}, &atomic.Int64{}
	core := fake.NewClientset()
	core.Resources = []*metav1.APIResourceList{{GroupVersion: "ray.io/v1", APIResources: []metav1.APIResource{{Name: "rayclusters", Kind: "RayCluster", Namespaced: true}}}}
	core.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		reviews.Add(1)
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		review.Status.Allowed = review.Spec.User == "alice" || review.Spec.User == "bob" && review.Spec.ResourceAttributes.Name == "his"
		return true, review, nil
	})
	var there []runtime.Object
	for _, name := range bindings {
		there = append(there, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": map[string]any{"name": name},
		}})
	}
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{policyBindings: "MutatingAdmissionPolicyBindingList"}, there...)
	objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists.Add(1)
		return false, nil, nil
	})
	return &Client{core: core, objects: objects, kinds: apiserver.NewResources(core.Discovery()), now: now}, reviews, lists
}

func rayClusterNamed(name, namespace string) bundle.Identity {
	return bundle.Identity{APIVersion: "ray.io/v1", Kind: "RayCluster", Namespace: namespace, Name: name}
}

// TestABurstAsksForRightsOnce: a user that creates a thousand objects is reviewed once every two
// seconds; another user, namespace or group is another question, and a no is asked again.
func TestABurstAsksForRightsOnce(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	c, reviews, _ := asked(t, func() time.Time { return at })
	review := func(user bundle.Submitter, name, namespace string, allowed bool, want int64) {
		t.Helper()
		before := reviews.Load()
		why, err := c.Allowed(t.Context(), user, rayClusterNamed(name, namespace))
		if err != nil || (why == "") != allowed {
			t.Fatalf("%s in %s by %+v: %q, %v; want allowed %v", name, namespace, user, why, err, allowed)
		}
		if got := reviews.Load() - before; got != want {
			t.Errorf("%s in %s by %+v took %d reviews, want %d", name, namespace, user, got, want)
		}
	}
	alice := bundle.Submitter{User: "alice", Groups: []string{"a"}}
	review(alice, "one", "team", true, 1)
	for range 1000 {
		review(alice, "another", "team", true, 0)
	}
	review(alice, "one", "other", true, 1)
	review(bundle.Submitter{User: "alice", Groups: []string{"a", "b"}}, "one", "team", true, 1)
	review(bundle.Submitter{User: "alice", UID: "1", Groups: []string{"a"}}, "one", "team", true, 1)
	review(bundle.Submitter{User: "bob"}, "hers", "team", false, 2)
	review(bundle.Submitter{User: "bob"}, "hers", "team", false, 2)
	review(bundle.Submitter{User: "bob"}, "his", "team", true, 2)
	review(bundle.Submitter{User: "bob"}, "hers", "team", false, 2) // what he may is of one name
	at = at.Add(answersKept)
	review(alice, "one", "team", true, 1)
}

// TestABurstLooksForPoliciesOnce: that a policy is in force is looked up once every two seconds,
// that it is not each time.
func TestABurstLooksForPoliciesOnce(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	c, _, lists := asked(t, func() time.Time { return at }, "muster-ray-user")
	look := func(policy string, stamps bool, want int64) {
		t.Helper()
		before := lists.Load()
		got, err := c.Stamps(t.Context(), policy)
		if err != nil || got != stamps {
			t.Fatalf("Stamps(%q) = %v, %v; want %v", policy, got, err, stamps)
		}
		if got := lists.Load() - before; got != want {
			t.Errorf("Stamps(%q) took %d lists, want %d", policy, got, want)
		}
	}
	look(stampsLabelled, true, 1)
	for range 1000 {
		look(stampsLabelled, true, 0)
	}
	look(stampsWrappers, false, 1)
	look(stampsWrappers, false, 1)
	at = at.Add(answersKept)
	look(stampsLabelled, true, 1)
}

// TestAnswersAreBounded: many users do not fill the memory, and those that are remembered are.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	var kept keptAnswers[int]
	now := time.Unix(1000, 0)
	for i := range 2 * mostAnswers {
		kept.keep(i, now)
	}
	if len(kept.until) != mostAnswers || !kept.yes(0, now) || kept.yes(mostAnswers, now) {
		t.Errorf("%d answers are kept, the first %v, one too many %v; want %d", len(kept.until), kept.yes(0, now), kept.yes(mostAnswers, now), mostAnswers)
	}
	later := now.Add(answersKept)
	kept.keep(-1, later)
	if len(kept.until) != 1 || !kept.yes(-1, later) {
		t.Errorf("%d answers are kept when the others are too old, want the last", len(kept.until))
	}
}
