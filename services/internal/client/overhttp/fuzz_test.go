package overhttp

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"muster.dev/muster/pkg/message/query"
)

// answers is a server that gives one answer to everything.
type answers struct {
	status int
	body   []byte
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(bytes.NewReader(a.body)), Header: http.Header{}, Request: r}, nil
}

// FuzzAnswer: whatever a server answers is an answer or an error.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"workloads": [{"id": "a"}], "next": ""}`))
	f.Add(200, []byte(`{"queues": [{"name": "q"}], "nodes": []}`))
	f.Add(403, []byte(`{"error": "no operator"}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		client, err := New(Settings{URL: "http://127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		client.http.Transport = answers{status % 1000, body}
		queries := query.NewClientOver(client)
		if _, err := queries.Nodes(t.Context()); err != nil && err.Error() == "" {
			t.Error("an error says nothing")
		}
		_, _ = queries.Queues(t.Context())                                     // errors are expected
		_, _ = queries.History(t.Context(), query.HistoryRequest{ID: "a"})     // the same
		_, _ = queries.Workloads(t.Context(), query.WorkloadsRequest{ID: "a"}) // the same
	})
}
