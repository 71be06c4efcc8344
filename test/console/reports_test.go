package console

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

var screenshots = flag.Bool("screenshots", false, "write the screenshots of docs/console.md again")

// TestReports: charts, usage, a what-if and decisions show what has happened on the stack, and
// tenants get what is of their own. With -screenshots it makes those of docs/console.md.
func TestReports(t *testing.T) {
	t.Parallel()
	research, theirs := ownQueue("charts", "alice"), ownQueue("strangers", "bob")
	spare := queuemanager.Queue{Name: "charts-spare", Namespaces: research.Namespaces, Submitters: research.Submitters}
	w := newWorld(t, []queuemanager.Queue{research, spare, theirs}, "alice", "bob", "olga")
	if err := w.AddNodes(t.Context(), "gpu", 4, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	first := w.submit("alice", "charts", stack.RayCluster("first", 1, 1))
	b := w.browse("olga")
	b.shows("Workloads a minute")
	b.visit("/workloads/" + string(first))
	b.shows("State: running")
	for _, name := range []string{"second", "third"} {
		w.submit("alice", "charts", stack.RayCluster(name, 4, 1))
	}
	foreign := w.submit("bob", "strangers", stack.RayCluster("train-of-bob", 4, 1))

	b.visit("/")
	b.shows("Waiting workloads: waiting 3")
	b.shows("Workloads a minute: submitted")
	b.shoot("overview")
	b.visit("/queues")
	b.shows("charts-spare")
	b.shoot("queues")
	b.visit("/queues/charts")
	b.shows("Waiting workloads: waiting 2")
	b.shoot("queue")
	b.visit("/workloads?phase=queued")
	b.shows("console-charts/third")
	b.shoot("workloads")
	b.visit("/nodes?cluster=" + w.Pool)
	b.shows(w.Pool + "-gpu-3")
	b.shoot("nodes")
	b.visit("/queues/charts?window=24h")
	b.shows("Waiting workloads: waiting 2")

	b.visit("/usage?since=1h&by=queue,user")
	b.shows("nvidia.com/gpu")
	b.shows("alice")
	b.shoot("usage")

	b.visit("/whatif")
	b.do("try four more nodes", chromedp.SendKeys(`//input[@name="like"]`, w.Pool+"/"+w.Pool+"-gpu-0"), chromedp.SendKeys(`//input[@name="count"]`, "4"), chromedp.Click(`//main//button`))
	b.shows("On version")
	b.shows("console-charts/second")
	b.shoot("whatif")
	b.visit("/whatif?cluster=" + w.Pool)
	b.shows("evicted")
	b.visit("/whatif?workload=first&priority=9") // it runs
	b.shows("On version")
	b.visit("/whatif")
	b.do("try a queues file", chromedp.SendKeys(`//textarea[@name="queues"]`, "queues: 7"), chromedp.Click(`//main//button`))
	b.shows("queues file: ")

	b.visit("/workloads/" + string(first))
	b.shoot("workload")
	b.visit(value(b, "find the decision of the first entry", chromedp.Evaluate[string](`document.querySelector(".timeline a").getAttribute("href")`)))
	b.shows(string(first))
	b.shows("muster replay --since")
	b.visit("/decisions")
	b.shows("decision ")
	b.shoot("decisions")

	of := w.browse("alice")
	of.shows("Waiting workloads: waiting 2")
	of.visit("/usage?since=1h&by=queue,user")
	of.shows("alice")
	of.visit("/whatif?workload=second&pods=workers=2")
	of.shows("On version")
	of.shows("console-charts/second")
	for _, path := range []string{"/usage?since=1h&by=queue,user", "/whatif?workload=" + string(foreign) + "&priority=9", "/whatif?workload=train-of-bob&priority=9", "/whatif?cluster=" + w.Pool, "/decisions", "/whatif?workload=second&queue=strangers"} {
		of.visit(path)
		if text := of.text(); strings.Contains(text, "train-of-bob") && !strings.Contains(text, "No workload") || strings.Contains(text, "console-strangers") || strings.Contains(text, "decision 1") {
			t.Errorf("alice sees on %s:\n%s", path, text)
		}
	}
}

// shoot writes a screenshot of the page for the docs.
func (b *browser) shoot(name string) {
	b.t.Helper()
	if !*screenshots {
		return
	}
	screenshot := value(b, "take a picture of "+name, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "images", "console-"+name+".png"), screenshot, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
