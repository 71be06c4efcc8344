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

	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/version"
)

// tracingSettings say where spans go.
type tracingSettings struct {
	endpoint string
	ratio    float64
}

func (t *tracingSettings) register(flags *flag.FlagSet) {
	flags.StringVar(&t.endpoint, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector that takes OTLP over HTTP, such as http://collector:4318; without it there are no traces")
	flags.Float64Var(&t.ratio, "trace-ratio", 1, "part of the workloads that are traced, 0 to 1; the same for all services")
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

// flushTimeout bounds the export of what is left when a service ends.
const flushTimeout = 2 * time.Second

// start returns the tracer of the named service, and what ends it. Where spans
// are to go, their loss is no failure of the service: the exporter drops what it
// cannot send.
func (t tracingSettings) start(ctx context.Context, name string) (tracing.Tracer, func(), error) {
	if t.endpoint == "" {
		return tracing.Tracer{}, func() {}, nil
	}
	traces, err := url.JoinPath(t.endpoint, "v1", "traces") // where the protocol has them
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
		_ = provider.Shutdown(ctx) // nobody is left to be told
	}, nil
}

// NewTracerProvider returns a provider for the named service that traces a part
// of the workloads.
func NewTracerProvider(name string, ratio float64, options ...sdktrace.TracerProviderOption) *sdktrace.TracerProvider {
	about := resource.NewSchemaless(attribute.String("service.name", "muster-"+name), attribute.String("service.version", version.String()))
	return sdktrace.NewTracerProvider(append([]sdktrace.TracerProviderOption{
		sdktrace.WithIDGenerator(tracing.IDs{}), sdktrace.WithSampler(sampler(ratio)), sdktrace.WithResource(about),
	}, options...)...)
}

// sampler decides by the id of the trace alone, so that all services decide alike
// whatever they have heard of each other. (The SDK's own takes the last 8 bytes,
// of which a UUID has two bits that are always the same.)
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
