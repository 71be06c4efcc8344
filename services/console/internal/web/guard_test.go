package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestLongAddresses: an address that is too long is refused before anything keeps a part of it.
func TestLongAddresses(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(1, 1), "olga", true)
	for name, test := range map[string]struct {
		path   string
		status int
	}{
		"parameters":           {"/workloads?name=" + strings.Repeat("x", longestQuery), http.StatusRequestURITooLong},
		"a path":               {"/queues/" + strings.Repeat("x", longestPath), http.StatusRequestURITooLong},
		"an escaped path":      {"/queues/" + strings.Repeat("%20", longestPath/2), http.StatusRequestURITooLong},
		"updates":              {"/live/workloads?name=" + strings.Repeat("x", longestQuery), http.StatusRequestURITooLong},
		"a login":              {"/login?to=/" + strings.Repeat("x", longestQuery), http.StatusRequestURITooLong},
		"long, not too long":   {"/workloads?name=" + strings.Repeat("x", longestQuery/2), http.StatusOK},
		"a queue that is none": {"/queues/" + strings.Repeat("x", longestPath/2), http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, content := b.get(test.path); status != test.status || status == http.StatusRequestURITooLong && !strings.Contains(content, "too long") {
				t.Errorf("status %d, want %d: %s", status, test.status, content)
			}
		})
	}
}

// TestActionsCountAsPagesLoading: what forms ask for is bounded like the pages of their user, who
// has one bound for both.
func TestActionsCountAsPagesLoading(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	a.lateChange, a.arrived = make(chan struct{}), make(chan struct{})
	b := newBrowser(t, a, "alice", true)
	b.client.Timeout = askTimeout
	other := b.another("olga")
	path, form := "/workloads/"+string(theID)+"/cancel", url.Values{"form": {b.form()}}
	done := make(chan int, mostRequests)
	for range mostRequests {
		go func() {
			response, err := b.client.PostForm(b.url+path, form)
			if err != nil {
				done <- 0
				return
			}
			response.Body.Close()
			done <- response.StatusCode
		}()
		<-a.arrived
	}
	for what, ask := range map[string]func() (int, http.Header, string){
		"an action": func() (int, http.Header, string) { return b.post(path, form) }, "a confirmation": func() (int, http.Header, string) { return b.get(path) },
		"a page": func() (int, http.Header, string) { return b.get("/queues") },
	} {
		if status, _, content := ask(); status != http.StatusTooManyRequests || !strings.Contains(content, "pages loading") {
			t.Errorf("%s: status %d: %s", what, status, content)
		}
	}
	if status, _, _ := other.get("/queues"); status != http.StatusOK {
		t.Errorf("another caller: status %d", status)
	}
	close(a.lateChange)
	for range mostRequests {
		if status := <-done; status != http.StatusSeeOther {
			t.Errorf("a change: status %d", status)
		}
	}
}
