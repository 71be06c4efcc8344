package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// ownQueue is a queue with a namespace of its own, to which one caller may submit.
func ownQueue(name, who string) queuemanager.Queue {
	return queuemanager.Queue{Name: name, Namespaces: []string{"console-" + name}, Submitters: []workload.Submitters{{Who: []string{"http/" + who}}}}
}

// An operator looks at each page, sees changes without a reload, and acts; each action has its
// effect in Muster.
func TestAnOperatorSeesAndActs(t *testing.T) {
	t.Parallel()
	research := ownQueue("research", "alice")
	spare := queuemanager.Queue{Name: "spare", Namespaces: research.Namespaces, Submitters: research.Submitters}
	w := newWorld(t, []queuemanager.Queue{research, spare}, "alice", "olga")
	if err := w.AddNodes(t.Context(), "gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	first := w.submit("alice", "research", stack.RayCluster("first", 1, 1))
	second := w.submit("alice", "research", stack.RayCluster("second", 1, 1))
	b := w.browse("olga")
	node := w.Pool + "-gpu-0"

	b.shows("1/1") // the map of nodes
	for path, text := range map[string]string{
		"/": "Needs a person", "/dead-letters": "Dead letters", "/queues": "research", "/queues/research": "second", "/workloads": "first", "/workloads?phase=queued": "second",
		"/nodes": node, "/nodes/" + w.Pool + "/" + node: "console-research/first", "/workloads/" + string(second): "What would admit it now",
	} {
		b.visit(path)
		b.shows(text)
		b.shows("live")
	}
	b.visit("/workloads/" + string(second) + "/manifest")
	b.shows("kind: RayCluster")

	act := func(path, label string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		b.visit(path)
		b.do("ask for "+label, append(steps, chromedp.Click(`//main//button`), chromedp.WaitVisible("#live"))...)
		b.shows("Asked: " + label)
	}
	page := "/workloads/" + string(second)
	act(page+"/hold", "Hold", chromedp.SendKeys("#in-why", "wait for the data"))
	b.shows("wait for the data")
	act(page+"/resume", "Resume")
	act(page+"/priority", "Set priority", chromedp.SendKeys("#in-value", "7"))
	b.shows("Priority")
	act(page+"/move", "Move", chromedp.SendKeys("#in-queue", "spare"))
	b.shows("in queue spare")
	act("/queues/spare/hold", "Hold", chromedp.SendKeys("#in-why", "driver update"))
	b.shows("driver update")
	act("/queues/spare/resume", "Resume")

	// The page of the second shows that it runs, without a reload, when the first is cancelled.
	b.visit(page)
	value(b, "mark the page", chromedp.Evaluate[string](`window.mark = "not reloaded"`))
	other := w.browse("olga")
	other.visit("/workloads/" + string(first) + "/cancel")
	other.do("cancel the first", chromedp.Click(`//main//button`), chromedp.WaitVisible("#live"))
	b.shows("State: running")
	if mark := value(b, "read the mark", chromedp.Evaluate[string](`window.mark || "reloaded"`)); mark != "not reloaded" {
		t.Errorf("the page was %s", mark)
	}
	other.shows("State: cancelled")
	act(page+"/requeue", "Requeue")
	b.shows("attempt 2")
	act(page+"/cancel", "Cancel")
	b.shows("State: cancelled")

	at := "/nodes/" + w.Pool + "/" + node
	act(at+"/close", "Close", chromedp.SendKeys("#in-hours", "2"), chromedp.SendKeys("#in-why", "new fans"))
	b.shows("reserved for maintenance")
	act(at+"/open", "Open")

	cluster := "/clusters/" + w.Pool
	act(cluster+"/cordon", "Cordon", chromedp.SendKeys("#in-why", "new cables"))
	b.shows("new cables")
	third := w.submit("alice", "research", stack.RayCluster("third", 1, 1))
	b.visit("/workloads/" + string(third))
	b.shows("is cordoned")
	b.visit("/")
	b.do("ask for the end of the cordon", chromedp.Click("#action-uncordon-"+w.Pool), chromedp.WaitVisible(`//main//button`))
	act(cluster+"/uncordon", "Uncordon")
	b.visit("/workloads/" + string(third))
	b.shows("State: running")
	emptied(b, act, third, at+"/empty", "Close and empty", at+"/open", "Open")
	emptied(b, act, third, cluster+"/drain", "Drain", cluster+"/uncordon", "Uncordon")
}

// emptied has a node or cluster emptied, on which a workload runs: the workload waits until it may
// be used again.
func emptied(b *browser, act func(path, label string, steps ...chromedp.Action[chromedp.Void]), id workload.ID, empty, label, back, labelBack string) {
	b.t.Helper()
	var steps []chromedp.Action[chromedp.Void]
	if strings.HasPrefix(empty, "/nodes/") {
		steps = append(steps, chromedp.SendKeys("#in-hours", "2"))
	}
	act(empty, label, steps...)
	b.visit("/workloads/" + string(id))
	b.shows("State: queued")
	act(back, labelBack)
	b.visit("/workloads/" + string(id))
	b.shows("State: running")
}

// Tenants see their own queues and workloads, and neither those of others nor nodes.
func TestTenantsSeeTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []queuemanager.Queue{ownQueue("mine", "alice"), ownQueue("theirs", "bob")}, "alice", "bob", "olga")
	mine, theirs := w.submit("alice", "mine", stack.RayCluster("train-of-alice", 1, 1)), w.submit("bob", "theirs", stack.RayCluster("train-of-bob", 1, 1))
	b := w.browse("alice")
	for _, path := range []string{"/", "/queues", "/workloads", "/workloads?queue=theirs", "/queues/theirs", "/workloads/" + string(theirs), "/workloads/" + string(theirs) + "/cancel", "/nodes"} {
		b.visit(path)
		if text := b.text(); strings.Contains(text, "train-of-bob") || strings.Contains(text, "console-theirs") || strings.Contains(text, w.Pool) {
			t.Errorf("alice sees on %s:\n%s", path, text)
		}
	}
	b.visit("/workloads")
	b.shows("train-of-alice")
	b.visit("/workloads/" + string(mine))
	if text := b.text(); strings.Contains(text, "Set priority") || !strings.Contains(text, "Cancel") {
		t.Errorf("a tenant may cancel and set no priority; the page has:\n%s", text)
	}
}

// By keyboard alone: the first stop skips to the content, and Enter opens what has the focus.
func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []queuemanager.Queue{ownQueue("keys", "alice")}, "alice", "olga")
	b := w.browse("alice")
	b.do("go to the first stop", chromedp.KeyEvent("\t"))
	focused := value(b, "read the focus", chromedp.Evaluate[string](`document.activeElement.innerText`))
	b.do("go to the queues", chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"), chromedp.WaitVisible(`//h1[text()="Queues"]`))
	if address := value(b, "read the address", chromedp.Location()); focused != "Skip to the content" || !strings.HasSuffix(address, "/queues") {
		t.Errorf("the first stop is %q, and the queues are at %q", focused, address)
	}
	b.do("go back", chromedp.NavigateBack(), chromedp.WaitVisible(`//h1[text()="Overview"]`))
}
