package kubernetes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

func carriedContent(t *testing.T, o query.CarriedObject) *query.CarriedObject {
	t.Helper()
	var err error
	if o.Digest, err = o.Sum(); err != nil {
		t.Fatal(err)
	}
	return &o
}

// TestReadCarried: ConfigMaps and Secrets are read as they are; Secrets that are good for their own
// cluster alone, and other kinds, are not.
func TestReadCarried(t *testing.T) {
	t.Parallel()
	secret := func(name string, of corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Type: of, Data: map[string][]byte{"k": []byte("v")}}
	}
	client := &Client{core: fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {1}}},
		secret("a", corev1.SecretTypeDockerConfigJson), secret("token", corev1.SecretTypeServiceAccountToken),
	)}
	for name, c := range map[string]struct {
		kind, of string
		want     *query.CarriedObject
		err      string
	}{
		"a ConfigMap":   {workload.KindConfigMap, "a", carriedContent(t, query.CarriedObject{Text: map[string]string{"k": "v"}, Data: map[string][]byte{"b": {1}}}), ""},
		"a Secret":      {workload.KindSecret, "a", carriedContent(t, query.CarriedObject{Type: "kubernetes.io/dockerconfigjson", Data: map[string][]byte{"k": []byte("v")}}), ""},
		"a token":       {workload.KindSecret, "token", nil, "is not carried"},
		"none":          {workload.KindConfigMap, "none", nil, "not found"},
		"another kind":  {"Pod", "a", nil, "is not carried"},
		"no kind given": {"", "a", nil, "is not carried"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client.ReadCarried(t.Context(), query.CarriedWanted{Kind: c.kind, Namespace: "n", Name: c.of})
			if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPlaceCarried: a copy has the content, its digest and its owner. Gangs share a copy, which gets
// the newest content; an object that is no copy stays.
func TestPlaceCarried(t *testing.T) {
	t.Parallel()
	old, now := carriedContent(t, query.CarriedObject{Data: map[string][]byte{"old": {1}}}), carriedContent(t, query.CarriedObject{Data: map[string][]byte{"new": {2}}})
	copyOf := func(content *query.CarriedObject, owners ...string) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Namespace: "n", Name: "a", Annotations: map[string]string{kube.CarriedFromKey: "main", kube.CarriedDigestKey: content.Digest}}
		for _, uid := range owners {
			meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "r", UID: types.UID(uid)})
		}
		return meta
	}
	own := metav1.ObjectMeta{Namespace: "n", Name: "a"}
	for name, c := range map[string]struct {
		there  *metav1.ObjectMeta
		owners []string // afterwards
		data   map[string][]byte
	}{
		"nothing is there":             {nil, []string{"2"}, now.Data},
		"a copy of another gang":       {new(copyOf(now, "1")), []string{"1", "2"}, now.Data},
		"an older copy":                {new(copyOf(old, "1")), []string{"1", "2"}, now.Data},
		"its own copy":                 {new(copyOf(now, "2")), []string{"2"}, now.Data},
		"an object of the namespace's": {&own, nil, old.Data},
	} {
		for _, kind := range []string{workload.KindConfigMap, workload.KindSecret} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				core := fake.NewClientset()
				if c.there != nil {
					before := old.Data
					if c.there.Annotations[kube.CarriedDigestKey] == now.Digest {
						before = now.Data
					}
					core = fake.NewClientset(&corev1.ConfigMap{ObjectMeta: *c.there, BinaryData: before}, &corev1.Secret{ObjectMeta: *c.there, Data: before})
				}
				client := &Client{core: core}
				to := CarriedCopy{Kind: kind, Namespace: "n", Name: "a", From: "main", Content: now, Owners: copyOf(now, "2").OwnerReferences}
				for range 2 { // again changes nothing
					if err := client.PlaceCarried(t.Context(), to); err != nil {
						t.Fatal(err)
					}
				}
				var meta metav1.ObjectMeta
				var data map[string][]byte
				if kind == workload.KindSecret {
					found, err := core.CoreV1().Secrets("n").Get(t.Context(), "a", metav1.GetOptions{})
					if err != nil {
						t.Fatal(err)
					}
					meta, data = found.ObjectMeta, found.Data
				} else {
					found, err := core.CoreV1().ConfigMaps("n").Get(t.Context(), "a", metav1.GetOptions{})
					if err != nil {
						t.Fatal(err)
					}
					meta, data = found.ObjectMeta, found.BinaryData
				}
				meta.ManagedFields = nil // of the fake
				want := own
				if len(c.owners) > 0 {
					want = copyOf(now, c.owners...)
				}
				if diff := cmp.Diff(want, meta) + cmp.Diff(c.data, data); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
	damaged := *now
	damaged.Data = old.Data
	owner := copyOf(now, "1").OwnerReferences
	token := carriedContent(t, query.CarriedObject{Type: string(corev1.SecretTypeServiceAccountToken)})
	for name, to := range map[string]CarriedCopy{
		"a content with another digest": {Kind: workload.KindSecret, Name: "a", Content: &damaged, Owners: owner},
		"a token of a service account":  {Kind: workload.KindSecret, Name: "a", Content: token, Owners: owner},
		"another kind":                  {Kind: "Pod", Name: "a", Content: now, Owners: owner},
		"a copy without owners":         {Kind: workload.KindSecret, Name: "a", Content: now},
		"an owner without UID":          {Kind: workload.KindSecret, Name: "a", Content: now, Owners: copyOf(now, "1", "").OwnerReferences},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			t.Parallel()
			core := fake.NewClientset()
			if err := (&Client{core: core}).PlaceCarried(t.Context(), to); err == nil || len(core.Actions()) > 0 {
				t.Errorf("it was placed: %v, %v", err, core.Actions())
			}
		})
	}
}

// TestOwnCarried: a copy gets more owners and keeps its content, what is no copy stays as it is, and
// where nothing is that is reported.
func TestOwnCarried(t *testing.T) {
	t.Parallel()
	owner := func(uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "r", UID: types.UID(uid)}
	}
	marks := map[string]string{kube.CarriedFromKey: "main", kube.CarriedDigestKey: "old"}
	gone := metav1.Now()
	for name, c := range map[string]struct {
		before *metav1.ObjectMeta
		there  bool
		writes int
		err    string
	}{
		"nothing":              {nil, false, 0, ""},
		"a copy without it":    {&metav1.ObjectMeta{Annotations: marks, OwnerReferences: []metav1.OwnerReference{owner("1")}}, true, 1, ""},
		"a copy with it":       {&metav1.ObjectMeta{Annotations: marks, OwnerReferences: []metav1.OwnerReference{owner("2")}}, true, 0, ""},
		"no copy":              {&metav1.ObjectMeta{}, true, 0, ""},
		"a copy that is going": {&metav1.ObjectMeta{Annotations: marks, DeletionTimestamp: &gone, Finalizers: []string{"x"}}, false, 0, "is being deleted"},
	} {
		for _, kind := range []string{workload.KindConfigMap, workload.KindSecret} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				core, data := fake.NewClientset(), map[string][]byte{"k": []byte("v")}
				if c.before != nil {
					meta := *c.before
					meta.Namespace, meta.Name = "n", "a"
					core = fake.NewClientset(&corev1.ConfigMap{ObjectMeta: meta, BinaryData: data}, &corev1.Secret{ObjectMeta: meta, Data: data})
				}
				there, err := (&Client{core: core}).OwnCarried(t.Context(), CarriedCopy{Kind: kind, Namespace: "n", Name: "a", Owners: []metav1.OwnerReference{owner("2")}})
				if there != c.there || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("there %t, %v; want %t, %q", there, err, c.there, c.err)
				}
				writes := 0
				for _, action := range core.Actions() {
					if update, is := action.(k8stesting.UpdateAction); is {
						writes++
						meta, _ := update.GetObject().(metav1.Object)
						if owners := meta.GetOwnerReferences(); len(owners) != 2 || meta.GetAnnotations()[kube.CarriedDigestKey] != "old" {
							t.Errorf("written is %+v", update.GetObject())
						}
					}
				}
				if writes != c.writes {
					t.Errorf("%d writes, want %d", writes, c.writes)
				}
			})
		}
	}
}
