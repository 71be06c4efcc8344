package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/internal/client/output"
)

// TestAClusterIsOfNoNamespace: --namespace leaves out the changes of clusters, in lines and as data.
func TestAClusterIsOfNoNamespace(t *testing.T) {
	t.Parallel()
	e, err := event.New("one", "test", time.Now(), &event.ClusterChanged{Cluster: "east", State: "silent", Was: "ready", Live: 3})
	if err != nil {
		t.Fatal(err)
	}
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		namespace string
		output    output.Format
		want      string
	}{
		"of all":               {"", output.Text, "  cluster east is silent, was ready; workloads with places there: 3\n"},
		"of all, as JSON":      {"", output.JSON, `"state":"silent"`},
		"of a namespace":       {"a", output.Text, ""},
		"of a namespace, JSON": {"a", output.JSON, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			o := &eventsOptions{namespaces: namespaces{namespace: c.namespace}, output: c.output}
			if err := o.printOne(bus.Delivery{Data: data, Stored: time.Now()}, &out); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("it prints %q, want %q", got, c.want)
			}
		})
	}
}

// TestChangesOfClustersOverHTTP: an operator gets them among the events of workloads. `muster
// events` shows them, and `muster get workloads --watch` passes them over.
func TestChangesOfClustersOverHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/events" {
			fmt.Fprint(w, `{"workloads": []}`)
			return
		}
		fmt.Fprint(w, "id: 1\ntime: 2026-03-04T05:00:00Z\nevent: dev.muster.cluster.changed.v1\ndata: {\"cluster\": \"east\", \"state\": \"silent\", \"was\": \"ready\", \"live\": 3}\n\n")
		fmt.Fprint(w, "event: dev.muster.workload.changed.v1\ndata: {\"id\": \"6f2b5d1e-4f0a-5c1d-9d3e-000000000001\", \"name\": \"one\", \"kind\": \"RayJob\", \"queue\": \"q\", \"namespace\": \"a\", \"phase\": \"running\"}\n\n")
	}))
	t.Cleanup(server.Close)
	const changed = "  cluster east is silent, was ready; workloads with places there: 3\n"
	for args, want := range map[string]bool{"events --since 1h": true, "events --since 1h -n a": false, "get workloads --watch": false} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out, errOut strings.Builder
			code := Run(t.Context(), append(strings.Fields(args), "--server", server.URL), strings.NewReader(""), &out, &errOut)
			if got := out.String(); code != 0 || strings.Contains(got, changed) != want || !strings.Contains(got, "running") {
				t.Errorf("exit code %d, %q, %q; want the workload, and the cluster: %t", code, got, errOut.String(), want)
			}
		})
	}
}
