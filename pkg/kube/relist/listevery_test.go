package relist_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/pkg/kube/relist"
)

// TestAWatchListsAgainAfterAWhile: versions do not reveal every restore, so each watch
// lists again once after ListEvery.
func TestAWatchListsAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := relist.Wrap(answers(`{"metadata":{"resourceVersion":"100"}}`))
		watch := func(path string) int {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/"+path+"?watch=true&resourceVersion=100", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			return response.StatusCode
		}
		const leases = "apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
		steps := []struct {
			after time.Duration
			path  string
			want  int
		}{
			{0, "api/v1/pods", http.StatusOK},
			{relist.ListEvery / 2, "api/v1/pods", http.StatusOK},
			{0, "api/v1/nodes", http.StatusOK},
			{relist.ListEvery / 2, "api/v1/pods", http.StatusGone},
			{0, "api/v1/nodes", http.StatusOK},
			{0, "api/v1/pods", http.StatusOK}, // it has listed
			{relist.ListEvery - time.Second, "api/v1/pods", http.StatusOK},
			{time.Second, "api/v1/pods", http.StatusGone},
			{0, leases, http.StatusOK},
			{relist.ListEvery, leases, http.StatusOK}, // package lease reads its own again
		}
		for i, step := range steps {
			time.Sleep(step.after) // of synctest's clock
			if got := watch(step.path); got != step.want {
				t.Errorf("step %d: a watch of %s is answered with %d, want %d", i, step.path, got, step.want)
			}
		}
	})
}
