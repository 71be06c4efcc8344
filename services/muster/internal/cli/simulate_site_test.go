package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/services/internal/client/exit"
)

// documented returns the files and the table of docs/simulation.md.
func documented(t *testing.T) (submissions, queues, fleet, table string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "simulation.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 1 {
			_, block, _ := strings.Cut(part, "\n")
			blocks = append(blocks, block)
		}
	}
	if len(blocks) < 4 {
		t.Fatalf("the page has %d blocks; want the command, the submissions, the queues and the nodes", len(blocks))
	}
	_, table, _ = strings.Cut(blocks[0], "\n")
	return blocks[1], blocks[2], blocks[3], table
}

// TestSimulateDocumented: the files of docs/simulation.md give the table there.
func TestSimulateDocumented(t *testing.T) {
	t.Parallel()
	submissions, queues, fleet, want := documented(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got := run(t, "", "simulate", "--trace", file("submissions.jsonl", submissions), "--queues", file("queues.yaml", queues), "--fleet", file("fleet.yaml", fleet))
	if got.code != exit.OK {
		t.Fatalf("%+v", got)
	}
	if words := strings.Fields(strings.ReplaceAll(got.out, dir+"/", "")); strings.Join(words, " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("the table is\n%s\nthe page has\n%s", got.out, want)
	}
}

// TestSimulateASite: queues of one's own decide, evictions cost the work that was done, and
// jobs that can never run are counted and named.
func TestSimulateASite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	queues := write("queues.yaml", "queues: [{name: a, namespaces: [a]}, {name: b, namespaces: [b]}]\nclusterQueues: [{name: a, preemption: {withinClusterQueue: LowerPriority}}]\n")
	fleet := write("fleet.yaml", "nodes: [{name: one, allocatable: {cpu: 4}}]\n")
	pods := `"pods": [{"name": "workers", "requests": {"cpu": 4}}]`
	events := `{"at": "0s", "queue": "a", "runs": "10m", ` + pods + `}
{"at": "5m", "queue": "a", "priority": 9, "runs": "1m", ` + pods + `}
{"at": "6m", "queue": "a", "runs": "1m", "pods": [{"name": "workers", "requests": {"cpu": 5}}]}
{"at": "6m", "queue": "c", "runs": "1m", ` + pods + "}\n"
	got := run(t, events, "simulate", "--trace", "-", "--queues", queues, "--fleet", fleet, "-o", "json")
	if got.code != exit.OK {
		t.Fatalf("%+v", got)
	}
	var result struct {
		Jobs, Evictions, Unplayed int
		Lost                      float64 `json:"lostSeconds"`
		Makespan                  float64 `json:"makespanSeconds"`
		MaxWait                   float64 `json:"maxWaitSeconds"`
	}
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatal(err)
	}
	if result.Jobs != 2 || result.Evictions != 1 || result.Lost != 300 || result.Unplayed != 2 || result.Makespan < 960 || result.MaxWait < 360 {
		t.Errorf("the result is %+v; want two jobs, one of them evicted after five minutes and begun again after six, and two that cannot run", result)
	}
	for _, why := range []string{"line 3 (job-3): ", "line 4 (job-4): it is refused: "} {
		if !strings.Contains(got.errOut, why) {
			t.Errorf("%q is missing in %q", why, got.errOut)
		}
	}
}

// TestSimulateRefusesSites: what does not go together is refused.
func TestSimulateRefusesSites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"queues.yaml": "queues: [{name: a, namespaces: [a]}, {name: b, namespaces: [b]}]\n", "fleet.yaml": "nodes: [{name: n, allocatable: {cpu: 1}}]\n",
		"twice.yaml": "nodes: [{name: n, allocatable: {cpu: 1}}, {name: n, allocatable: {cpu: 1}}]\n", "zones.yaml": "groups: [{name: n, racksPerZone: 2, allocatable: {cpu: 1}}]\n",
		"event.jsonl": `{"runs": "1m", "queue": "a", "pods": [{"name": "w", "requests": {"cpu": 1}}]}`, "log.swf": line("0", "10", "1", "10"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ flags, want string }{
		"nodes twice":          {"--trace log.swf --nodes 4 --fleet fleet.yaml", "--nodes 4 and --fleet"},
		"policy and queues":    {"--trace log.swf --nodes 4 --policy easy --queues queues.yaml", "--policy easy and --queues"},
		"queue without queues": {"--trace log.swf --nodes 4 --queue a", "--queue a without --queues"},
		"pod without fleet":    {"--trace log.swf --nodes 4 --pod cpu=1", "--pod cpu=1 without --fleet"},
		"wrong pod":            {"--trace log.swf --fleet fleet.yaml --pod cpu", `--pod: "cpu": want a resource and an amount`},
		"no queue":             {"--trace log.swf --nodes 4 --queues queues.yaml", "--queue is missing"},
		"no fleet":             {"--trace event.jsonl --queues queues.yaml", "--fleet is missing"},
		"a node twice":         {"--trace log.swf --fleet twice.yaml", `nodes[1].name: there are two nodes "n"; want another name`},
		"racks without zones":  {"--trace log.swf --fleet zones.yaml", "groups[0].zones: 0 with 2 racks each"},
		"no such file":         {"--trace log.swf --fleet none.yaml", "fleet: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"simulate"}
			for _, word := range strings.Fields(c.flags) {
				if strings.Contains(word, ".") {
					word = filepath.Join(dir, word)
				}
				args = append(args, word)
			}
			got := run(t, "", args...)
			if got.code != exit.Usage || !strings.Contains(got.errOut, c.want) || got.out != "" {
				t.Errorf("%+v\nwant exit code %d and %q", got, exit.Usage, c.want)
			}
		})
	}
}
