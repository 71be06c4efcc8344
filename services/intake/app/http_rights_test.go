package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// allow sets who may submit to queue default.
func (d *apiWorld) allow(rights ...workload.Submitters) {
	d.mu.Lock()
	d.rightsOf = rights
	d.mu.Unlock()
}

// TestAQueueForATenant: a caller sees the namespaces of a queue that it may use, and not
// who else may submit.
func TestAQueueForATenant(t *testing.T) {
	t.Parallel()
	d := newAPIWorld(t, nil)
	d.allow(workload.Submitters{Who: []string{"http/alice"}, Namespaces: []string{"default"}}, workload.Submitters{Who: []string{"http/bob"}, Namespaces: []string{"hidden"}})
	var listed query.QueuesAnswer
	d.ask("GET", "/v1/queues", "", http.StatusOK, &listed)
	var one query.Queue
	d.ask("GET", "/v1/queues/default", "", http.StatusOK, &one)
	for _, q := range append(listed.Queues, one) {
		if text := fmt.Sprintf("%+v", q); q.Name != "default" || len(q.Namespaces) != 1 || strings.Contains(text, "hidden") || strings.Contains(text, "bob") {
			t.Errorf("alice sees queue %s", text)
		}
	}
}

// TestAStreamEndsWithItsCallersRight: of what happens after the right was withdrawn, a
// caller reads nothing in streams that are open.
func TestAStreamEndsWithItsCallersRight(t *testing.T) {
	t.Parallel()
	d := newAPIWorld(t, nil)
	record := workload.Record{Workload: workload.Workload{ID: "8f6ccd2c-8fbe-5623-bab5-2d94a6d7f8cc", Queue: "default", Namespace: "default", Name: "seen"}, Phase: workload.Queued}
	d.store(record)
	streams := map[string]<-chan string{
		"of the workload": d.stream("/v1/workloads/" + string(record.ID) + "/events"),
		"of the queue":    d.stream("/v1/queues/default/events"),
	}
	for name, stream := range streams {
		if line := <-stream; !strings.Contains(line, "seen") {
			t.Fatalf("the stream %s begins with %q", name, line)
		}
	}
	d.allow(workload.Submitters{Who: []string{"http/bob"}})
	more := time.NewTicker(100 * time.Millisecond)
	defer more.Stop()
	patience := time.After(30 * time.Second)
	for open := len(streams); open > 0; {
		select {
		case <-more.C:
			d.store(record)
		case <-patience:
			t.Fatalf("%d streams are open, and their caller has no right any more", open)
		}
		for name, stream := range streams {
			select {
			case _, read := <-stream:
				if !read {
					delete(streams, name)
					open--
				}
			default:
			}
		}
	}
}
