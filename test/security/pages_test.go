package security

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// A tenant that lists workloads page by page, with any filter and from any place, gets
// the same answers whether or not others have workloads.
func TestPagesShowNothingOfOthers(t *testing.T) {
	t.Parallel()
	theirs, mine := ownQueue("covered", "alice"), ownQueue("nosy", "bob")
	c := newCallers(t, []queuemanager.Queue{theirs, mine}, "alice", "bob")
	page := func(t *testing.T, parameters string) (status int, answer httpapi.WorkloadsPage) {
		t.Helper()
		status, body := c.ask("bob", http.MethodGet, "/v1/workloads?"+parameters, "")
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%s: %v: %s", parameters, err, body)
			}
		}
		return status, answer
	}
	var own, others []workload.ID
	for i := range 3 {
		own = append(own, c.submitAs("bob", "nosy", stack.RayCluster(fmt.Sprintf("own-%d", i), 1, 1)))
		for range i + 1 {
			others = append(others, c.submitAs("alice", "covered", stack.RayCluster(fmt.Sprintf("other-%d", len(others)), 1, 1)))
		}
	}
	for _, id := range append(own, others...) {
		c.reaches(id, workload.Queued)
	}
	t.Run("what is theirs", func(t *testing.T) {
		for _, parameters := range []string{"queue=covered", "name=other-0", "namespace=" + theirs.Namespaces[0], "phase=queued&queue=covered", "queue=not-there"} {
			t.Run(parameters, func(t *testing.T) {
				if status, answer := page(t, parameters+"&limit=1"); status != http.StatusOK || len(answer.Workloads) > 0 || answer.Next != "" {
					t.Errorf("%s: status %d, %d workloads, next %q; want an empty page and no other", parameters, status, len(answer.Workloads), answer.Next)
				}
			})
		}
	})
	t.Run("pages of one", func(t *testing.T) {
		after := ""
		for i, id := range own {
			status, answer := page(t, "limit=1&after="+url.QueryEscape(after))
			if status != http.StatusOK || len(answer.Workloads) != 1 || answer.Workloads[0].ID != id {
				t.Fatalf("page %d: status %d, %+v; want workload %s alone", i, status, answer, id)
			}
			want := id
			if i == len(own)-1 {
				want = ""
			}
			if answer.Next != want {
				t.Errorf("page %d: next is %q, want %q, which tells of no other workload", i, answer.Next, want)
			}
			after = string(answer.Next)
		}
	})
	t.Run("behind another's", func(t *testing.T) {
		for _, after := range []string{string(others[0]), "00000000-0000-5000-8000-000000000000", "7"} {
			t.Run("after "+after, func(t *testing.T) {
				if status, answer := page(t, "limit=1&after="+after); status != http.StatusBadRequest {
					t.Errorf("after %s: status %d, %+v; want 400", after, status, answer)
				}
			})
		}
	})
}
