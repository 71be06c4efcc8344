package service

import (
	"context"

	"github.com/go-logr/zapr"
	"k8s.io/klog/v2"
)

// ForKubernetes returns a context with the service's logger for the libraries of
// Kubernetes, so that client-go logs there and not to standard error.
func (r *Runtime) ForKubernetes(ctx context.Context) context.Context {
	return klog.NewContext(ctx, zapr.NewLogger(r.Logger))
}
