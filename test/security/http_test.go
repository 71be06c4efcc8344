package security

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// callers are clients of the HTTP API; the name of each is its token.
type callers struct {
	*tenants
	url string
}

// newCallers starts a stack whose queue-manager has the queues and whose HTTP API
// knows the names.
func newCallers(t *testing.T, queues []queuemanager.Queue, names ...string) *callers {
	t.Helper()
	var tokens strings.Builder
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		fmt.Fprintf(&tokens, "- {name: %s, sha256: %s}\n", name, hex.EncodeToString(sum[:]))
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(tokens.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Addr, 1)
	w := newStack(t, stack.Options{
		Queues: queues,
		HTTP:   intake.HTTPConfig{Address: "127.0.0.1:0", TokensFile: file, Operators: "olga", Listening: func(a net.Addr) { listening <- a }},
	})
	return &callers{w, "http://" + (<-listening).String()}
}

// ask sends a request of a caller and returns the status and the body.
func (c *callers) ask(who, method, path, body string) (int, string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+who)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// submitAs submits a manifest over HTTP and returns the workload.
func (c *callers) submitAs(who, queue, manifest string) workload.ID {
	c.t.Helper()
	status, answer := c.ask(who, http.MethodPost, "/v1/queues/"+queue+"/workloads", manifest)
	var submitted httpapi.Submission
	if err := json.Unmarshal([]byte(answer), &submitted); err != nil || status != http.StatusCreated {
		c.t.Fatalf("%s submits to %s: status %d, %v: %s", who, queue, status, err, answer)
	}
	return submitted.Workload
}

// ownQueue is a queue with its own namespace for one caller of the HTTP API.
func ownQueue(name, who string) queuemanager.Queue {
	return queuemanager.Queue{
		Name: name, Namespaces: []string{name + "-" + uuid.NewString()[:8]},
		Submitters: []workload.Submitters{{Who: []string{"http/" + who}}},
	}
}

// A tenant that waits behind another hears over HTTP that something is in the way,
// and neither its name, its id, its queue nor its namespace; of what is not theirs
// they hear nothing.
func TestExplainShowsATenantItsOwnOnly(t *testing.T) {
	t.Parallel()
	theirs, mine := ownQueue("secretive", "alice"), ownQueue("curious", "bob")
	c := newCallers(t, []queuemanager.Queue{theirs, mine}, "alice", "bob")
	if err := c.AddNodes(t.Context(), "gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	hidden := c.submitAs("alice", "secretive", stack.RayCluster("covert", 1, 1))
	c.reaches(hidden, workload.Admitted)
	behind := c.submitAs("alice", "secretive", stack.RayCluster("veiled", 1, 1))
	waits := c.submitAs("bob", "curious", stack.RayCluster("waits", 1, 1))
	secrets := []string{string(hidden), string(behind), "covert", "veiled", "secretive", theirs.Namespaces[0], "alice"}
	path := "/v1/workloads/" + string(waits)
	for _, each := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, path + "/explanation", "", http.StatusOK},
		{http.MethodGet, path, "", http.StatusOK},
		{http.MethodGet, "/v1/workloads", "", http.StatusOK},
		{http.MethodGet, "/v1/queues", "", http.StatusOK},
		{http.MethodPost, "/v1/queues/none/workloads", stack.RayCluster("x", 1, 0), http.StatusNotFound},
		{http.MethodGet, "/v1/queues/none", "", http.StatusNotFound},
		{http.MethodGet, "/v1/events?since=2020-01-01T00:00:00Z&follow=false", "", http.StatusOK},
		{http.MethodGet, "/v1/dead-letters", "", http.StatusForbidden},
		{http.MethodGet, "/v1/workloads?name=%00", "", http.StatusBadRequest},
	} {
		t.Run(each.method+" "+each.path, func(t *testing.T) {
			status, answer := c.ask("bob", each.method, each.path, each.body)
			if status != each.want {
				t.Errorf("%s %s: status %d, want %d: %s", each.method, each.path, status, each.want, answer)
			}
			for _, secret := range secrets {
				if strings.Contains(answer, secret) {
					t.Errorf("%s %s tells %q: %s", each.method, each.path, secret, answer)
				}
			}
		})
	}
	// What is there and not theirs is answered as what is not there.
	const none = "00000000-0000-5000-8000-000000000000"
	for _, each := range []struct{ method, path string }{
		{http.MethodGet, "/v1/workloads/%s"}, {http.MethodGet, "/v1/workloads/%s/explanation"},
		{http.MethodGet, "/v1/workloads/%s/events"}, {http.MethodDelete, "/v1/workloads/%s"},
	} {
		t.Run(each.method+" "+each.path, func(t *testing.T) {
			status, answer := c.ask("bob", each.method, fmt.Sprintf(each.path, hidden), "")
			unknown, absent := c.ask("bob", each.method, fmt.Sprintf(each.path, none), "")
			if status != http.StatusNotFound || status != unknown || strings.ReplaceAll(answer, string(hidden), none) != absent {
				t.Errorf("%s %s: %d %s; of one that is not there %d %s", each.method, each.path, status, answer, unknown, absent)
			}
		})
	}
	for _, each := range []struct{ method, path, body string }{
		{http.MethodPost, "/v1/queues/%s/workloads", stack.RayCluster("x", 1, 0)}, {http.MethodGet, "/v1/queues/%s", ""}, {http.MethodGet, "/v1/queues/%s/events", ""},
	} {
		t.Run(each.method+" "+each.path, func(t *testing.T) {
			status, answer := c.ask("bob", each.method, fmt.Sprintf(each.path, "secretive"), each.body)
			unknown, absent := c.ask("bob", each.method, fmt.Sprintf(each.path, "not-there"), each.body)
			if status != unknown || strings.ReplaceAll(answer, "secretive", "not-there") != absent {
				t.Errorf("%s %s: %d %s; of one that is not there %d %s", each.method, each.path, status, answer, unknown, absent)
			}
		})
	}
}
