package service

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"muster.dev/muster/pkg/spec/workload"
)

// TestSpansReachACollector: a collector has received a span when the service has ended.
func TestSpansReachACollector(t *testing.T) {
	t.Parallel()
	received := make(chan *collector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("request to %s: %v", r.URL.Path, err)
		}
		received <- request
	}))
	t.Cleanup(server.Close)
	tracer, flush, err := tracingSettings{endpoint: server.URL, ratio: 1}.start(t.Context(), "intake")
	if err != nil {
		t.Fatal(err)
	}
	id := workload.ID(uuid.NewString())
	tracer.Begin(id, "", "submission read").End(nil)
	flush()
	spans := (<-received).ResourceSpans
	if len(spans) != 1 || len(spans[0].ScopeSpans) != 1 || len(spans[0].ScopeSpans[0].Spans) != 1 {
		t.Fatalf("the collector received %v, want one span", spans)
	}
	if got := spans[0].ScopeSpans[0].Spans[0].Name; got != "submission read" {
		t.Errorf("the span is %q", got)
	}
	if about := spans[0].Resource.String(); !strings.Contains(about, "muster-intake") {
		t.Errorf("the spans' service is not named: %s", about)
	}
}

func TestTracingIsOffByDefault(t *testing.T) {
	t.Parallel()
	tracer, flush, err := tracingSettings{ratio: 1}.start(t.Context(), "intake")
	if err != nil || tracer.On() {
		t.Errorf("without an endpoint: on %v, error %v", tracer.On(), err)
	}
	flush()
	for _, bad := range []tracingSettings{{endpoint: "collector:4318"}, {endpoint: "grpc://collector"}, {endpoint: "http://"}, {ratio: -1}, {ratio: 1.5}, {ratio: math.NaN()}} {
		if bad.validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestAPartIsTraced: every service samples the same workloads.
func TestAPartIsTraced(t *testing.T) {
	t.Parallel()
	const workloads = 2000
	of := func(ratio float64) (traced int) {
		provider := NewTracerProvider("test", ratio)
		tracer := provider.Tracer("test")
		for range workloads {
			_, span := tracer.Start(t.Context(), "x")
			if span.IsRecording() {
				traced++
			}
		}
		return traced
	}
	if got := of(0); got != 0 {
		t.Errorf("with ratio 0 %d are traced", got)
	}
	if got := of(1); got != workloads {
		t.Errorf("with ratio 1 only %d are traced", got)
	}
	if got := of(0.25); got < workloads/5 || got > workloads*3/10 {
		t.Errorf("with ratio 0.25 %d of %d are traced", got, workloads)
	}
}

func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	for address, fine := range map[string]bool{
		"": true, "127.0.0.1:0": true, "[::1]:6060": true, "localhost:6060": true,
		":6060": false, "0.0.0.0:6060": false, "10.0.0.1:6060": false, "127.0.0.1": false, "example.org:6060": false,
	} {
		t.Run(address, func(t *testing.T) {
			if err := validateProfiles(address); (err == nil) != fine {
				t.Errorf("pprof-address %q: %v", address, err)
			}
		})
	}
	profiles, err := listenProfiles("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(profiles.Close)
	health, err := ListenHealth("127.0.0.1:0", newHealth(), NewMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(health.Close)
	for base, want := range map[string]int{profiles.URL(): http.StatusOK, health.URL(): http.StatusNotFound} {
		t.Run(base, func(t *testing.T) {
			response, err := http.Get(base + "/debug/pprof/heap?debug=1")
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("heap profile at %s: %s, want %d", base, response.Status, want)
			}
		})
	}
}
