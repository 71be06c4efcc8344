package web

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// TestChartsFollow: a page does not wait for charts that take long; its updates bring them.
func TestChartsFollow(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	a.lateActivity = make(chan struct{})
	b := newBrowser(t, a, "olga", false)
	b.get("/usage") // whatever else, while the activity is not answered
	_, _, content := b.get("/queues/research")
	if !strings.Contains(content, "The charts take a moment") {
		t.Errorf("the page lacks that charts follow: %s", content)
	}
	close(a.lateActivity)
}

// TestUpdates: a stream sends the region when it differs, and ends with the session's token.
func TestUpdates(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "olga", true)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/live/workloads/"+string(theID), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ended without %q: %v", text, lines.Err())
	}
	until("event: region")
	until("p-queued")
	a.set(func() { a.record.Phase, a.record.Cluster = "running", "east" })
	until("p-running")
	a.set(func() { a.revoked = true })
	until("event: gone")
	for lines.Scan() {
	}
	if lines.Err() != nil {
		t.Errorf("the stream ends with %v", lines.Err())
	}
}

// TestStreamsAreBounded: one more than the limit is refused.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(1, 1), "olga", true)
	for range mostStreams {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/live/queues", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := b.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, _ := b.get("/live/queues"); status != http.StatusTooManyRequests {
		t.Errorf("one stream more: status %d", status)
	}
}

// TestTheMapFollows: an overview whose nodes are late comes without them, and its updates bring
// them.
func TestTheMapFollows(t *testing.T) {
	t.Parallel()
	a := newAPI(20, 1)
	a.late = make(chan struct{})
	b := newBrowser(t, a, "olga", true)
	if status, _, content := b.get("/"); status != http.StatusOK || !strings.Contains(content, "their map follows") || strings.Contains(content, "gpu-00001") || !strings.Contains(content, "cluster east is silent") {
		t.Errorf("status %d: %s", status, content)
	}
	b.follows("/", "gpu-00001", a.late)
}

// TestTheReasonFollows: the page of a workload does not wait for an explanation that is late, and
// its updates bring it.
func TestTheReasonFollows(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	a.lateReason = make(chan struct{})
	b := newBrowser(t, a, "olga", true)
	path, reason := "/workloads/"+string(theID), "2 fewer pods of workers"
	b.client.Timeout = askTimeout * 2 / 3 // when this ends a page is shown without what was asked
	if status, _, content := b.get(path); status != http.StatusOK || !strings.Contains(content, "It is not known at the moment") || strings.Contains(content, reason) {
		t.Errorf("status %d: %s", status, content)
	}
	b.client.Timeout = 0 // updates have no end
	b.follows(path, reason, a.lateReason)
}

// follows opens the updates of a page, lets what is late come, and waits until they have a text.
func (b *browser) follows(path, text string, late chan struct{}) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+"/live"+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	close(late)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	b.t.Errorf("the updates do not bring %q", text)
}
