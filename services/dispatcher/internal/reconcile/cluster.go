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
	placeholderWriter
	gangWriter
	remainders
}

// gangWriter is the API server, for objects of gangs that run.
type gangWriter interface {
	Announce(ctx context.Context, object kubernetes.Object, at time.Time) error
	GiveUp(ctx context.Context, object kubernetes.Object, sizes map[string]int, pods map[string][]string) error
}

// remainders reads, uncached, what is left of a workload.
type remainders interface {
	Remaining(ctx context.Context, id workload.ID, namespace string) (kubernetes.Left, error)
}

// Cache is the watched part of the API server.
type Cache interface {
	sweepCache
	ownerCache
	strayCache
	objectCache
}

// objectCache finds the objects of one workload.
type objectCache interface {
	Object(kind, namespace, name string) *kubernetes.Object
	Clusters(id workload.ID) []kubernetes.Object
	WatchesRequests() bool
}

// objectAPI is the API server, for Ray objects that exist.
type objectAPI interface {
	Get(ctx context.Context, kind, namespace, name string) (*kubernetes.Object, error)
	Delete(ctx context.Context, object kubernetes.Object) error
}

// podDeleter deletes pods.
type podDeleter interface {
	DeletePod(ctx context.Context, pod gang.Pod, force bool) error
}

// Reporter publishes a status for queue-manager and returns when it is stored. The
// status of a workload that is done with is kept for a while only.
type Reporter func(ctx context.Context, status event.GangStatus, keep time.Duration) error
