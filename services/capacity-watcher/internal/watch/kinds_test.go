package watch

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// served answers as an API server. What it answers changes while it is asked.
type served struct {
	mu    sync.Mutex
	lists []*metav1.APIResourceList
	err   error
	hangs chan struct{} // nil: it does not
}

func (s *served) answer(err error, lists ...*metav1.APIResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.lists = err, lists
}

func (s *served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	hangs := s.hangs
	s.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, s.lists, s.err
}

// hang has it answer no longer, until the function is called that it returns.
func (s *served) hang() (end func()) {
	hangs := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = hangs
	return func() { close(hangs) }
}

func apiOf(version string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: version, APIResources: resources}
}

func TestKindsOfAnAPIServer(t *testing.T) {
	t.Parallel()
	core := apiOf("v1", metav1.APIResource{Name: "services", Kind: "Service"}, metav1.APIResource{Name: "pods", Kind: "Pod"}, metav1.APIResource{Name: "pods/eviction", Kind: "Eviction"})
	kubeflow := apiOf("kubeflow.org/v1", metav1.APIResource{Name: "pytorchjobs", Kind: "PyTorchJob"}, metav1.APIResource{Name: "pytorchjobs/status", Kind: "PyTorchJob"})
	failed := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("no answer")}}
	many := apiOf("example.org/v1")
	for i := range event.MostKinds + 1 {
		many.APIResources = append(many.APIResources, metav1.APIResource{Name: fmt.Sprintf("things%d", i), Kind: fmt.Sprintf("Thing%d", i)})
	}
	for name, c := range map[string]struct {
		from  *served
		want  []workload.ObjectKind
		fails bool
	}{
		"kinds":                       {&served{lists: []*metav1.APIResourceList{kubeflow, core}}, []workload.ObjectKind{"kubeflow.org/v1 PyTorchJob", "v1 Pod", "v1 Service"}, false},
		"an API that does not answer": {&served{lists: []*metav1.APIResourceList{core}, err: failed}, []workload.ObjectKind{"metrics.k8s.io/v1beta1 *", "v1 Pod", "v1 Service"}, false},
		"no answer":                   {&served{err: errors.New("connection refused")}, nil, true},
		"too many":                    {&served{lists: []*metav1.APIResourceList{many}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := servedKinds(c.from)
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
				t.Errorf("error %v, kinds (-want +got):\n%s", err, diff)
			}
		})
	}
}

// recorder is a Target.
type recorder struct{ cache *observed.Cache }

func (r recorder) Apply(change func(*observed.Cache)) { change(r.cache) }

// Kinds are read again and again; what else is published waits for the first answer, but not
// for ever, and a term ends while the API server hangs.
func TestKindsAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &served{err: errors.New("connection refused")}
		cache := observed.New("c")
		v := &view{Options: Options{Logger: zap.NewNop()}, target: recorder{cache}}
		listed := make(chan time.Duration, 1)
		began := time.Now()
		go v.watchKinds(t.Context(), server, func() {
			select {
			case listed <- time.Since(began):
			default:
			}
		})
		if after := <-listed; after != kindsMost || cache.Kinds() != nil {
			t.Errorf("without an answer the rest has waited for %s and %v are known", after, cache.Kinds())
		}
		synctest.Wait()
		server.answer(nil, apiOf("v1", metav1.APIResource{Name: "pods", Kind: "Pod"}))
		time.Sleep(kindsEvery)
		synctest.Wait()
		if !cache.SameKinds([]workload.ObjectKind{"v1 Pod"}) {
			t.Errorf("%v are known after the API server has answered", cache.Kinds())
		}
		server.answer(errors.New("connection refused"))
		time.Sleep(kindsEvery)
		synctest.Wait()
		if !cache.SameKinds([]workload.ObjectKind{"v1 Pod"}) {
			t.Errorf("%v are known after it has failed", cache.Kinds())
		}
		many := apiOf("example.org/v1")
		for i := range event.MostKinds + 1 {
			many.APIResources = append(many.APIResources, metav1.APIResource{Name: fmt.Sprintf("things%d", i), Kind: fmt.Sprintf("Thing%d", i)})
		}
		server.answer(nil, many)
		time.Sleep(kindsEvery)
		synctest.Wait()
		if cache.Kinds() != nil {
			t.Errorf("%v are known after there are too many; they are unknown", cache.Kinds())
		}
		t.Cleanup(server.hang())
		time.Sleep(kindsEvery)
	})
}
