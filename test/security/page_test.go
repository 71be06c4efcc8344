package security

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// snippet finds the commands of the page on HTTP for people with notebooks.
var snippet = regexp.MustCompile("(?s)```(sh|python)\n(.*?)```")

// TestTheNotebookPageWorks runs the commands of curl and the program of Python in the page,
// as they are: the second submits another workload, follows it until it runs, and ends it.
func TestTheNotebookPageWorks(t *testing.T) {
	t.Parallel()
	shell, python := snippets(t)
	research := ownQueue("research", "bob")
	c := newCallers(t, []queuemanager.Queue{research}, "bob")
	if err := c.AddNodes(t.Context(), "gpu", 2, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	if output, err := asOnThePage(t, c.url, "sh", "-e", "-c", shell); err != nil || !strings.Contains(output, `"workloads":[{`) {
		t.Fatalf("curl: %v, want the list with the workload:\n%s", err, output)
	}
	if output, err := asOnThePage(t, c.url, "python3", "-c", python); err != nil || !strings.Contains(output, "running") {
		t.Fatalf("Python: %v, want running:\n%s", err, output)
	}
	var made httpapi.WorkloadsPage
	if status, answer := c.ask("bob", http.MethodGet, "/v1/workloads", ""); status != http.StatusOK || json.Unmarshal([]byte(answer), &made) != nil || len(made.Workloads) != 2 {
		t.Fatalf("curl and Python submitted one workload each, and the list is %d: %s; want two", status, answer)
	}
	c.reaches(made.Workloads[1].ID, workload.Cancelled)
}

// snippets returns the commands of curl and the program of Python in the page.
func snippets(t *testing.T) (shell, python string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	found := snippet.FindAllStringSubmatch(string(page), -1)
	if len(found) != 2 || found[0][1] != "sh" || found[1][1] != "python" {
		t.Fatalf("the page has the snippets %q, want one of sh and one of Python", found)
	}
	return found[0][2], found[1][2]
}

// asOnThePage runs a program where the manifests of the page are.
func asOnThePage(t *testing.T, url string, program ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(program[0]); err != nil {
		t.Skipf("%v: the page's part for it is not tried", err)
	}
	dir := t.TempDir()
	for file, name := range map[string]string{"cluster.yaml": "glue", "train.yaml": "train"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(stack.RayCluster(name, 1, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), program[0], program[1:]...)
	command.Dir, command.Env = dir, append(os.Environ(), "MUSTER_SERVER="+url, "MUSTER_TOKEN=bob")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestTheNotebookPageHasWhatIsRefused: the program of the page goes on after the rejection of
// another submission with its key, and ends with the server's reason when it is refused
// itself, or when no server is there.
func TestTheNotebookPageHasWhatIsRefused(t *testing.T) {
	t.Parallel()
	_, python := snippets(t)
	answer := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				fmt.Fprint(w, "event: dev.muster.workload.rejected.v1\ndata: {\"workload\": \"a\", \"reason\": {\"message\": \"other content\"}}\n\n",
					"event: dev.muster.workload.changed.v1\ndata: {\"id\": \"a\", \"phase\": \"running\"}\n\n")
				return
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, test := range map[string]struct {
		url, want string
		fails     bool
	}{
		"another is rejected": {answer(http.StatusAccepted, `{"workload": "a"}`), "rejected: other content\nrunning", false},
		"it is refused":       {answer(http.StatusConflict, `{"error": "the name is taken"}`), "the name is taken", true},
		"nobody is there":     {"http://127.0.0.1:1", "refused", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := asOnThePage(t, test.url, "python3", "-c", python)
			if (err != nil) != test.fails || !strings.Contains(output, test.want) || strings.Contains(output, "Traceback") {
				t.Errorf("%v, want %q and no traceback:\n%s", err, test.want, output)
			}
		})
	}
}
