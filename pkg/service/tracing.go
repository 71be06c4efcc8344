package service

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/service/version"
)

// tracingSettings configure the export of spans.
type tracingSettings struct {
	endpoint string
	ratio    float64
}

func (t *tracingSettings) register(flags *flag.FlagSet) {
	flags.StringVar(&t.endpoint, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://collector:4318; empty turns traces off")
	flags.Float64Var(&t.ratio, "trace-ratio", 1, "sampling ratio of workloads, 0 to 1; the same for all services")
}

func (t tracingSettings) validate() error {
	var faults []error
	if u, err := url.Parse(t.endpoint); t.endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		faults = append(faults, fmt.Errorf("otlp-endpoint: %q: want a URL such as http://collector:4318", t.endpoint))
	}
	if !(t.ratio >= 0 && t.ratio <= 1) {
		faults = append(faults, fmt.Errorf("trace-ratio: %v: want 0 to 1", t.ratio))
	}
	return errors.Join(faults...)
}

// flushTimeout bounds the export of the remaining spans when a service ends.
const flushTimeout = 2 * time.Second

// start returns the tracer of the named service, and its shutdown. The exporter drops
// spans that it cannot send; that is no failure of the service.
func (t tracingSettings) start(ctx context.Context, name string) (tracing.Tracer, func(), error) {
	if t.endpoint == "" {
		return tracing.Tracer{}, func() {}, nil
	}
	traces, err := url.JoinPath(t.endpoint, "v1", "traces") // OTLP's path
	if err != nil {
		return tracing.Tracer{}, nil, fmt.Errorf("export traces to %q: %w", t.endpoint, err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(traces))
	if err != nil {
		return tracing.Tracer{}, nil, fmt.Errorf("export traces to %q: %w", t.endpoint, err)
	}
	provider := NewTracerProvider(name, t.ratio, sdktrace.WithBatcher(exporter))
	return tracing.New(provider.Tracer("muster.dev/muster")), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // spans may be lost
	}, nil
}

// NewTracerProvider returns a provider for the named service that samples workloads with
// the ratio.
func NewTracerProvider(name string, ratio float64, options ...sdktrace.TracerProviderOption) *sdktrace.TracerProvider {
	about := resource.NewSchemaless(attribute.String("service.name", "muster-"+name), attribute.String("service.version", version.String()))
	return sdktrace.NewTracerProvider(append([]sdktrace.TracerProviderOption{
		sdktrace.WithIDGenerator(tracing.IDs{}), sdktrace.WithSampler(sampler(ratio)), sdktrace.WithResource(about),
	}, options...)...)
}

// sampler decides by the trace id alone, so that all services decide alike. (The SDK's
// sampler uses the last 8 bytes, of which a UUID has two constant bits.)
type sampler float64

// ShouldSample implements sdktrace.Sampler.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	decision := sdktrace.Drop
	if float64(binary.BigEndian.Uint64(p.TraceID[:8]))/(1<<64) < float64(s) {
		decision = sdktrace.RecordAndSample
	}
	return sdktrace.SamplingResult{Decision: decision, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
}

// Description implements sdktrace.Sampler.
func (s sampler) Description() string { return fmt.Sprintf("workloads/%v", float64(s)) }
