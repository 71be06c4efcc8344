package overhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/internal/client/exit"
)

// TestATokenStaysWithItsServer: a token goes over TLS or to this machine, and no
// redirection carries it on.
func TestATokenStaysWithItsServer(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://muster.example.org": "in the clear", "ftp://muster.example.org": "want a URL", "muster.example.org": "want a URL",
		"https://muster.example.org": "", "http://127.0.0.1:8080": "", "http://localhost:8080": "",
	} {
		t.Run(url, func(t *testing.T) {
			_, err := New(Settings{URL: url, Token: "secret"})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", url, err, want)
			}
		})
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server is asked, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	client, err := New(Settings{URL: first.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query.NewClientOver(client).Nodes(t.Context()); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("a redirection ends with %v", err)
	}
}

// TestOtherAnswers: what is not Muster's answer is an error that says so.
func TestOtherAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"another server": {http.StatusNotFound, "<html>", "not Muster's HTTP API"},
		"a problem":      {http.StatusForbidden, `{"error": "no operator"}`, "403 Forbidden: no operator"},
		"no JSON":        {http.StatusOK, "fine", "read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			client, err := New(Settings{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := query.NewClientOver(client).Queues(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestNoServerAnswers: where no server is, the error names it, and has nothing of NATS.
func TestNoServerAnswers(t *testing.T) {
	t.Parallel()
	client, err := New(Settings{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = query.NewClientOver(client).Queues(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot reach the server http://127.0.0.1:1: ") || strings.Contains(err.Error(), "NATS") || exit.Code(err) != exit.Unreachable {
		t.Errorf("%v, want that the server cannot be reached", err)
	}
}

// TestUsageAsksAsItWasAsked: the server gets each part of the request.
func TestUsageAsksAsItWasAsked(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Path + "?" + r.URL.Query().Encode()
		_, _ = w.Write([]byte(`{"rows": [{"key": ["a"]}]}`))
	}))
	defer server.Close()
	client, err := New(Settings{URL: server.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	answer, err := query.NewClientOver(client).Usage(t.Context(), query.UsageRequest{
		Since: since, Until: since.Add(time.Hour), By: []string{"queue", "day"}, Queue: "q", Namespace: "n", Resources: []resource.Name{"cpu", "memory"},
		Prices: []query.Price{{Flavor: "f", Resource: "cpu", PerHour: 0.25}},
	})
	if err != nil || len(answer.Rows) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	const want = "/v1/usage?by=queue%2Cday&namespace=n&price=f%3Acpu%3D0.25&queue=q&resource=cpu%2Cmemory&since=2026-03-04T05%3A06%3A07.000008Z&until=2026-03-04T06%3A06%3A07.000008Z"
	if got != want {
		t.Errorf("the server is asked for %s, want %s", got, want)
	}
}

// TestNodesAreAskedAsTheyWereAsked: the server gets each part of the request.
func TestNodesAreAskedAsTheyWereAsked(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Path + "?" + r.URL.Query().Encode()
		_, _ = w.Write([]byte(`{"nodes": [{"name": "a"}], "next": {"cluster": "c", "name": "b"}, "selected": true}`))
	}))
	defer server.Close()
	client, err := New(Settings{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := query.NewClientOver(client).SelectNodes(t.Context(), query.NodesRequest{
		Cluster: "c", Name: "n", Prefix: "p", State: query.NodeReady, From: query.NodeName{Cluster: "c", Name: "f"}, Limit: 7, Holders: true,
	})
	if err != nil || len(answer.Nodes) != 1 || answer.Next.Name != "b" {
		t.Fatalf("%+v, %v", answer, err)
	}
	if want := "/v1/nodes?cluster=c&from=c%2Ff&holders=true&limit=7&name=n&prefix=p&state=ready"; got != want {
		t.Errorf("the server is asked for %s, want %s", got, want)
	}
	if _, err := query.NewClientOver(client).Nodes(t.Context()); err != nil || got != "/v1/nodes?" {
		t.Errorf("all nodes: the server is asked for %s, %v", got, err)
	}
}

// TestADryRunWritesNothing: the HTTP API checks nothing without making it, so a dry run is
// refused before anything is sent.
func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the server is asked for %s %s", r.Method, r.URL)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	client, err := New(Settings{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	manifest := func(kind, spec string) query.ConfigureRequest {
		return query.ConfigureRequest{Apply: []json.RawMessage{json.RawMessage(`{"apiVersion": "muster.dev/v1", "kind": "` + kind + `", "metadata": {"name": "a"}, "spec": ` + spec + `}`)}}
	}
	deletion := func(kind string) query.ConfigureRequest {
		return query.ConfigureRequest{Delete: []kueue.Key{{Kind: kind, Name: "a"}}}
	}
	for name, r := range map[string]query.ConfigureRequest{
		"a hold":                   manifest(kueue.QueueHold, `{"since": "2026-01-01T00:00:00Z"}`),
		"a hold of a ClusterQueue": manifest(kueue.ClusterQueueHold, `{"since": "2026-01-01T00:00:00Z"}`),
		"a cordon":                 manifest(kueue.ClusterCordon, `{"since": "2026-01-01T00:00:00Z"}`),
		"a cluster that leaves":    manifest(kueue.ClusterCordon, `{"since": "2026-01-01T00:00:00Z", "left": true}`),
		"a cluster":                manifest(kueue.Cluster, `{}`),
		"a reservation":            manifest(kueue.Reservation, `{"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", "nodes": ["n"]}`),
		"a budget":                 manifest(kueue.Budget, `{}`),
		"the end of a hold":        deletion(kueue.QueueHold),
		"the end of a cordon":      deletion(kueue.ClusterCordon),
		"no reservation":           deletion(kueue.Reservation),
	} {
		t.Run(name, func(t *testing.T) {
			r.DryRun = true
			_, err := query.NewClientOver(client).Configure(t.Context(), "", r)
			if err == nil || !strings.Contains(err.Error(), "dry run") || !strings.Contains(err.Error(), "--nats-url") {
				t.Errorf("%v, want that a dry run is not served over HTTP", err)
			}
		})
	}
}
