package service

import (
	"context"

	"github.com/go-logr/zapr"
	"k8s.io/klog/v2"
)

// ForKubernetes returns a context with the service's logger for the libraries of
// Kubernetes: what client-go tells of leases, lists and watches is then a log line
// like any other, and not text on standard error.
func (r *Runtime) ForKubernetes(ctx context.Context) context.Context {
	return klog.NewContext(ctx, zapr.NewLogger(r.Logger))
}
