package app_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/app"
)

const token = "let me in"

// apiWorld is intake with its HTTP API, and a simulated queue-manager that stores every
// workload unless set otherwise.
type apiWorld struct {
	*world
	url    string
	client *http.Client

	mu       sync.Mutex
	stored   map[workload.ID]workload.Record
	rightsOf []workload.Submitters // of queue default; empty is everybody
}

func tokensFile(t *testing.T) string {
	t.Helper()
	sum := sha256.Sum256([]byte(token))
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "- {name: alice, sha256: %s}\n", hex.EncodeToString(sum[:])), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newAPIWorld(t *testing.T, configure func(*app.HTTPConfig)) *apiWorld {
	t.Helper()
	d := &apiWorld{world: newWorld(t), client: http.DefaultClient, stored: map[workload.ID]workload.Record{}}
	listening := make(chan net.Addr, 1)
	d.config.HTTP = app.HTTPConfig{Address: "127.0.0.1:0", TokensFile: tokensFile(t), Listening: func(a net.Addr) { listening <- a }}
	if configure != nil {
		configure(&d.config.HTTP)
	}
	if err := d.config.Validate(); err != nil {
		t.Fatal(err)
	}
	d.play()
	stop := d.start()
	t.Cleanup(func() { _ = stop() })
	d.url = "http://" + (<-listening).String()
	return d
}

// play answers as queue-manager does: "default" admits every submitter, "closed" only bob.
func (d *apiWorld) play() {
	go func() {
		for delivery := range d.accepted {
			_, payload, err := delivery.Event()
			if err != nil {
				d.t.Error(err)
				continue
			}
			delivery.Ack()
			switch e := payload.(type) {
			case *event.WorkloadSubmitted:
				record := workload.Record{Workload: e.Workload, Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: time.Now()}}
				if record.Namespace == "" {
					record.Namespace = "default"
				}
				d.store(record)
			case *event.WorkloadCancel:
				d.mu.Lock()
				record := d.stored[e.Workload]
				d.mu.Unlock()
				record.Phase, record.Reason = workload.Cancelled, &workload.Reason{Kind: workload.ReasonCancelled, Message: e.Why + " by " + e.Submitter}
				d.store(record)
			}
		}
	}()
	nc := d.bus.Conn()
	must := func(err error) {
		if err != nil {
			d.t.Fatal(err)
		}
	}
	must(query.Handle(d.ctx, nc, query.QueuesSubject, func(context.Context, struct{}) (query.QueuesAnswer, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return query.QueuesAnswer{Queues: []query.Queue{
			{Name: "closed", Namespaces: []string{"default"}, Submitters: []workload.Submitters{{Who: []string{"http/bob"}}}},
			{Name: "default", Namespaces: []string{"default", "hidden"}, Submitters: d.rightsOf},
		}}, nil
	}))
	must(query.Handle(d.ctx, nc, query.WorkloadsSubject, func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		answer := query.WorkloadsAnswer{Workloads: []workload.Record{}, Next: 7}
		for id, record := range d.stored {
			if (r.ID == "" || r.ID == id) && (len(r.Phases) == 0 || slices.Contains(r.Phases, record.Phase)) && (r.Queue == "" || r.Queue == record.Queue) {
				answer.Workloads = append(answer.Workloads, record)
			}
		}
		return answer, nil
	}))
	must(query.Handle(d.ctx, nc, query.HistorySubject, func(context.Context, query.HistoryRequest) (query.HistoryAnswer, error) {
		return query.HistoryAnswer{Entries: []query.HistoryEntry{{Phase: workload.Queued}}}, nil
	}))
	must(query.Handle(d.ctx, nc, query.ExplainSubject, func(_ context.Context, r query.ExplainRequest) (query.ExplainAnswer, error) {
		return query.ExplainAnswer{Explanation: workload.Explanation{Workload: r.ID, Position: 3}}, nil
	}))
}

func (d *apiWorld) store(record workload.Record) {
	d.mu.Lock()
	d.stored[record.ID] = record
	d.mu.Unlock()
	envelope, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadChanged{Record: record})
	if err == nil {
		err = d.bus.Publish(d.ctx, event.EventsSubject(record.Queue, record.ID), envelope)
	}
	if err != nil && d.ctx.Err() == nil {
		d.t.Error(err)
	}
}

// ask sends a request with the token and decodes the answer.
func (d *apiWorld) ask(method, path, body string, want int, into any, headers ...string) *http.Response {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.ctx, method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := d.client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if response.StatusCode != want {
		d.t.Errorf("%s %s: status %d, want %d: %s", method, path, response.StatusCode, want, content)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			d.t.Errorf("%s %s: %v in %s", method, path, err, content)
		}
	}
	return response
}

// stream returns the data of server-sent events until they end.
func (d *apiWorld) stream(path string) <-chan string {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.ctx, http.MethodGet, d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := d.client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { response.Body.Close() })
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		d.t.Fatalf("%s: status %d, %s", path, response.StatusCode, got)
	}
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			if data, is := strings.CutPrefix(scanner.Text(), "data: "); is {
				lines <- data
			}
		}
	}()
	return lines
}

func (d *apiWorld) listed(filter string) []workload.Record {
	d.t.Helper()
	var page httpapi.WorkloadsPage
	d.ask("GET", "/v1/workloads"+filter, "", http.StatusOK, &page)
	return page.Workloads
}
