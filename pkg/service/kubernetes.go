package service

import (
	"context"
	"errors"

	"github.com/go-logr/zapr"
	"k8s.io/klog/v2"
)

// ForKubernetes returns a context with the service's logger for the libraries of
// Kubernetes, so that client-go logs there and not to standard error.
func (r *Runtime) ForKubernetes(ctx context.Context) context.Context {
	next := zapr.NewLogger(r.Logger).WithCallDepth(1).GetSink() // untilStopped is between
	return klog.NewContext(ctx, klog.New(untilStopped{stopping: ctx, next: next}))
}

// atDebug is the level of client-go that the service's logger has as debug.
const atDebug = 1

// untilStopped is a log in which a request that ends because the service stops, or a term of it
// ends, is no error: client-go logs each watch that is cancelled before its answer as one that has
// failed.
type untilStopped struct {
	stopping context.Context
	next     klog.LogSink
}

// Init implements klog.LogSink. The next one has been through it.
func (s untilStopped) Init(klog.RuntimeInfo) {}

// Enabled implements klog.LogSink.
func (s untilStopped) Enabled(level int) bool { return s.next.Enabled(level) }

// Info implements klog.LogSink.
func (s untilStopped) Info(level int, message string, fields ...any) {
	s.next.Info(level, message, fields...)
}

// Error implements klog.LogSink.
func (s untilStopped) Error(err error, message string, fields ...any) {
	if s.stopping.Err() == nil && !errors.Is(err, context.Canceled) {
		s.next.Error(err, message, fields...)
		return
	}
	if s.next.Enabled(atDebug) {
		s.next.Info(atDebug, message, append([]any{"error", err}, fields...)...)
	}
}

// WithValues implements klog.LogSink.
func (s untilStopped) WithValues(fields ...any) klog.LogSink {
	s.next = s.next.WithValues(fields...)
	return s
}

// WithName implements klog.LogSink.
func (s untilStopped) WithName(name string) klog.LogSink {
	s.next = s.next.WithName(name)
	return s
}

// callDepth is what a log has that names the caller's line.
type callDepth interface {
	WithCallDepth(depth int) klog.LogSink
}

// WithCallDepth implements callDepth.
func (s untilStopped) WithCallDepth(depth int) klog.LogSink {
	if deep, can := s.next.(callDepth); can {
		s.next = deep.WithCallDepth(depth)
	}
	return s
}
