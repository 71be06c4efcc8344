package security

import (
	"encoding/json"
	"net/http"
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
// as they are: the second submits what the first did, follows it until it runs, and ends it.
func TestTheNotebookPageWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	found := snippet.FindAllStringSubmatch(string(page), -1)
	if len(found) != 2 || found[0][1] != "sh" || found[1][1] != "python" {
		t.Fatalf("the page has the snippets %q, want one of sh and one of Python", found)
	}
	research := ownQueue("research", "bob")
	c := newCallers(t, []queuemanager.Queue{research}, "bob")
	if err := c.AddNodes(t.Context(), "gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(stack.RayCluster("glue", 1, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(says string, program ...string) {
		t.Helper()
		if _, err := exec.LookPath(program[0]); err != nil {
			t.Skipf("%v: the page's part for it is not tried", err)
		}
		command := exec.CommandContext(t.Context(), program[0], program[1:]...)
		command.Dir, command.Env = dir, append(os.Environ(), "MUSTER_SERVER="+c.url, "MUSTER_TOKEN=bob")
		if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), says) {
			t.Fatalf("%s: %v, want %q:\n%s", program[0], err, says, output)
		}
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	run(`"workloads":[{`, "sh", "-e", "-c", found[0][2])
	run("running", "python3", "-c", found[1][2])
	var made httpapi.WorkloadsPage
	if status, answer := c.ask("bob", http.MethodGet, "/v1/workloads", ""); status != http.StatusOK || json.Unmarshal([]byte(answer), &made) != nil || len(made.Workloads) != 1 {
		t.Fatalf("curl and Python submitted the same, and the list is %d: %s; want one workload", status, answer)
	}
	c.reaches(made.Workloads[0].ID, workload.Cancelled)
}
