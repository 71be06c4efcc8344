package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
)

// paths are the pages of a world with one workload and nodes.
func paths() []string {
	return []string{"/", "/queues", "/queues/research", "/workloads", "/workloads?phase=queued", "/workloads/" + string(theID), "/workloads/" + string(theID) + "/manifest", "/nodes", "/nodes?state=broken", "/nodes?from=east/gpu-00005", "/nodes/east/gpu-00001",
		"/usage", "/usage?since=24h&by=queue,day", "/dead-letters", "/dead-letters?from=100", "/decisions", "/decisions?workload=" + string(theID), "/whatif", "/whatif?workload=" + string(theID) + "&priority=7", "/whatif?queues=queues:+[]+%3C/textarea%3E", "/?window=24h", "/queues/research?window=7d"}
}

// TestPages: each page is HTML without script or style of its own, with what it is about, and
// with the headers that keep others from using it.
func TestPages(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(20, 3), "olga", true)
	texts := map[string][]string{
		"/": {
			"<li>JetStream is full</li>", `<a href="/workloads/` + string(theID) + `">workload team-a/train is stuck</a>`, `<a href="/nodes?cluster=east">cluster east is silent</a>`,
			`<a href="/dead-letters">3 messages could not be processed</a>`, "<li>a budget is used up</li>", "gpu-00001", "research",
		}, "/queues": {"research", "Cohort"}, "/queues/research": {"train-with-a-long-name-000000", "research-gpus", "412.50"},
		"/workloads": {"train-with-a-long-name-000002"}, "/workloads/" + string(theID): {"&lt;b&gt;train", "2 fewer pods of workers", "Cancel", "/manifest", "Earlier estimates of its start", "and its end is unknown"},
		"/workloads/" + string(theID) + "/manifest": {"kind: RayJob", "python &lt;b&gt;train.py --token (masked)", "Secrets that are masked: 1."},
		"/nodes": {"gpu-00019", "in 149m (declared)", "20 of 20 nodes"}, "/nodes?from=east/gpu-00005": {"gpu-00019", `rel="first"`}, "/nodes?state=broken": {"gpu-00007", "1 of 20 nodes"},
		"/nodes/east/gpu-00001": {"nvidia.com/gpu", "/whatif?drain=east%2Fgpu-00001", "team-a/train", "in 149m (declared)", "/nodes/east/gpu-00001/close", "/nodes/east/gpu-00001/empty"},
		"/usage":                {"12.50", "research"}, "/decisions": {"decision 7-13, version 90", "dev.muster.workload.submitted.v1; decide", "4 pods do not fit", "muster replay --since ", "/decisions?before=7-12", "2097152 bytes"},
		"/dead-letters":          {">150</th>", "submission or request", "queue research, user alice", "data is &#34;...&#34; &lt;b&gt;", "(60m ago)", "Rows 1 to 100 of 150.", "7 older ones", "/dead-letters?from=100"},
		"/dead-letters?from=100": {">1</th>", "Rows 101 to 150 of 150."},
		"/whatif?workload=" + string(theID) + "&priority=7": {"team-a/train", "sooner", "On version 77", "4 waiting workloads start as without the change", `value="7"`},
		"/whatif?queues=queues:+[]+%3C/textarea%3E":         {"queues: [] &lt;/textarea&gt;</textarea>", "On version 77"},
		"/?window=24h":               {"Waiting workloads", "now 1180", "<polyline", `aria-current="true"`},
		"/queues/research?window=7d": {"Waits of those admitted"},
	}
	for _, path := range paths() {
		t.Run(path, func(t *testing.T) {
			status, header, content := b.get(path)
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, content)
			}
			for _, text := range texts[path] {
				if !strings.Contains(content, text) {
					t.Errorf("the page lacks %q", text)
				}
			}
			checkHTML(t, content)
			for name, want := range map[string]string{
				"Content-Security-Policy": "script-src 'self'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
			} {
				if !strings.Contains(header.Get(name), want) {
					t.Errorf("%s: %q, want %q", name, header.Get(name), want)
				}
			}
		})
	}
}

// TestWhatWaitsIsInTheOrderOfTheQueue: the list of what waits asks for the order of positions, shows
// each position with the estimate and the reason, and its address keeps the filter on every page.
func TestWhatWaitsIsInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 300)
	b := newBrowser(t, a, "olga", false)
	_, _, content := b.get("/workloads?queue=research&phase=queued")
	for _, text := range []string{`<option selected>queued</option>`, `name="queue" value="research"`, "in the order of positions", "/workloads?after=00000000-0000-0000-0000-000000000200&amp;phase=queued&amp;queue=research"} {
		if !strings.Contains(content, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	rows := strings.Split(content, `<tr><th scope="row">`)[1:]
	if len(rows) != page.PageRows {
		t.Fatalf("%d rows, want %d", len(rows), page.PageRows)
	}
	for i, want := range []string{"train-with-a-long-name-000299", "train-with-a-long-name-000298"} {
		for _, text := range []string{want, fmt.Sprintf(`<td class="n">%d</td>`, i+1), fmt.Sprintf("in %dm, by 4d", 60*(i+1)), "4 of 4 pods of pod set"} {
			if !strings.Contains(rows[i], text) {
				t.Errorf("row %d lacks %q: %s", i+1, text, rows[i])
			}
		}
	}
	if _, _, content := b.get("/workloads?queue=research"); !strings.Contains(content, "In the order of submission.") || !strings.Contains(content, `href="/workloads?phase=queued&amp;queue=research"`) {
		t.Errorf("the list of all phases: %s", content)
	}
	b.get("/queues/research")
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, asked := range a.listed {
		if (asked.Get("order") == query.OrderPosition) != (asked.Get("phase") == "queued") || asked.Get("limit") != strconv.Itoa(page.PageRows) {
			t.Errorf("asked for %v", asked)
		}
	}
	if len(a.listed) != 4 { // two lists, and what waits and lives in the queue
		t.Errorf("asked for %d lists, want 4", len(a.listed))
	}
}

// TestLinksElsewhere: the page of a workload that runs links to its dashboard and logs, with what
// people named written as the URL needs it, and that of one that waits does not.
func TestLinksElsewhere(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "alice", false)
	path := "/workloads/" + string(theID)
	if _, _, content := b.get(path); strings.Contains(content, "example.org") {
		t.Errorf("one that waits: %s", content)
	}
	a.set(func() { a.record.Phase, a.record.Cluster, a.record.Times.Dispatched = "running", "east", time.Now() })
	other := b.another("olga") // whose answers are not kept yet
	_, _, content := other.get(path)
	for _, want := range []string{
		`<a rel="external noreferrer" href="https://east.example.org/team-a/%3Cb%3Etrain%3C%2Fb%3E">Ray dashboard</a>`,
		`<a rel="external noreferrer" href="https://logs.example.org/?id=` + string(theID) + `&amp;from=1h">Logs</a>`,
	} {
		if !strings.Contains(content, want) {
			t.Errorf("the page lacks %s: %s", want, content)
		}
	}
	checkHTML(t, content)
}

// TestWhatAnEvictionWouldLose: the page of a workload that has started has its last checkpoint and
// what an eviction would lose, and nothing of what would admit it.
func TestWhatAnEvictionWouldLose(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "alice", false)
	path := "/workloads/" + string(theID)
	const loses = "it loses 2400 accelerator-seconds since its last checkpoint at 2026-03-04T05:00:00Z"
	if _, _, content := b.get(path); strings.Contains(content, "Checkpoint") || strings.Contains(content, "Eviction") || !strings.Contains(content, "What would admit it now") {
		t.Errorf("one that waits: %s", content)
	}
	saved := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	a.set(func() {
		a.record.Phase, a.record.Cluster = workload.Running, "east"
		a.record.SetSaved(a.record.Saved().Next(1, saved, saved))
		a.cost = &workload.EvictionCost{Lost: 2400, Since: saved, Checkpoint: true, Unit: workload.UnitAccelerators}
	})
	_, _, content := b.another("olga").get(path) // whose answers are not kept yet
	for _, want := range []string{"Checkpoint", "2026-03-04 05:00:00 UTC", "Eviction", loses} {
		if !strings.Contains(content, want) {
			t.Errorf("the page lacks %q: %s", want, content)
		}
	}
	if strings.Contains(content, "What would admit it now") {
		t.Errorf("what has started is to be admitted: %s", content)
	}
	checkHTML(t, content)
}

// TestATenantSeesNoNodes: what the HTTP API refuses is refused, and is not offered.
func TestATenantSeesNoNodes(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(20, 3), "alice", true)
	if status, _, content := b.get("/nodes"); status != http.StatusForbidden || strings.Contains(content, "gpu-0") {
		t.Errorf("nodes: status %d: %s", status, content)
	}
	if status, _, content := b.get("/dead-letters"); status != http.StatusForbidden || strings.Contains(content, "muster.submit") {
		t.Errorf("dead letters: status %d: %s", status, content)
	}
	if status, _, content := b.get("/"); status != http.StatusOK || strings.Contains(content, "gpu-0") || strings.Contains(content, `href="/nodes"`) {
		t.Errorf("overview: status %d: %s", status, content)
	}
	if _, _, content := b.get("/workloads/" + string(theID)); strings.Contains(content, "action-priority") || !strings.Contains(content, "action-cancel") {
		t.Errorf("the actions of a tenant: %s", content)
	}
}

// TestQueuesOfOneName: a name that several namespaces have is no queue to hold, and the page of
// each names its namespace.
func TestQueuesOfOneName(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	other := a.queues.Queues[0]
	other.Namespaces = []string{"team-b"}
	a.queues.Queues = append(a.queues.Queues, other)
	b := newBrowser(t, a, "olga", true)
	for _, path := range []string{"/queues/research", "/queues/research/hold"} {
		if status, _, content := b.get(path); status != http.StatusBadRequest || !strings.Contains(content, "team-a, team-b") {
			t.Errorf("%s: status %d: %s", path, status, content)
		}
	}
	form := url.Values{"form": {b.form()}}
	if status, _, content := b.post("/queues/research/hold", form); status != http.StatusBadRequest || len(a.asked()) > 0 {
		t.Errorf("a hold of both: status %d, asked %q: %s", status, a.asked(), content)
	}
	if status, _, content := b.get("/queues/research/hold?namespace=team-b"); status != http.StatusOK || !strings.Contains(content, "in namespace team-b") {
		t.Errorf("the confirmation: status %d: %s", status, content)
	}
	if status, _, _ := b.post("/queues/research/hold?namespace=team-b", form); status != http.StatusSeeOther || len(a.asked()) != 1 {
		t.Errorf("a hold of one: status %d, asked %q", status, a.asked())
	}
}

// mostBytes bounds a page of the largest site.
const mostBytes = 1 << 20

// TestPagesOfALargeSite: with 10,000 nodes and 100,000 waiting workloads no page has more than
// a megabyte. Times are logged, because a test machine has no others to compare with.
func TestPagesOfALargeSite(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(10_000, 100_000), "olga", true)
	for _, path := range paths() {
		t.Run(path, func(t *testing.T) {
			began := time.Now()
			status, _, content := b.get(path)
			if status != http.StatusOK || len(content) > mostBytes {
				t.Errorf("status %d, %d bytes, want %d at most", status, len(content), mostBytes)
			}
			t.Logf("%d bytes after %s", len(content), time.Since(began))
		})
	}
}
