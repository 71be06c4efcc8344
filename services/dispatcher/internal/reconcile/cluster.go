package reconcile

import (
	"context"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Cluster is the API server: what the parts of the reconciler need of it, each beside
// its consumer. Package kubernetes describes each method.
type Cluster interface {
	rayAPI
	wrappedAPI
	accessReviews
	podWriter
	quotaReader
	sweepAPI
	controllerReader
	requestAPI
	Announce(ctx context.Context, object kubernetes.Object, at time.Time) error
	ShowPlaceholder(ctx context.Context, pod kubernetes.Placeholder) error
	GiveUp(ctx context.Context, object kubernetes.Object, sizes map[string]int, pods map[string][]string) error
	Remaining(ctx context.Context, id workload.ID, namespace string) (kubernetes.Left, error)
}

// Cache is the watched part of the API server.
type Cache interface {
	sweepCache
	ownerCache
	strayCache
	Object(kind, namespace, name string) *kubernetes.Object
	Clusters(id workload.ID) []kubernetes.Object
	WatchesRequests() bool
}

// podDeleter deletes pods.
type podDeleter interface {
	DeletePod(ctx context.Context, pod gang.Pod, force bool) error
}

// Reporter publishes a status for queue-manager and returns when it is stored. The
// status of a workload that is done with is kept for a while only.
type Reporter func(ctx context.Context, status event.GangStatus, keep time.Duration) error
