package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/manifest/bundle"
)

// rightsKept is how long a right that the dispatcher has is taken for granted.
const rightsKept = time.Minute

// rights are those that the dispatcher has itself, as the API server reported. It may
// be used concurrently.
type rights struct {
	mu    sync.Mutex
	until map[right]time.Time
}

type right struct {
	namespace string
	resource  schema.GroupVersionResource
}

func (r *rights) has(of right, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until[of])
}

func (r *rights) keep(of right, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[right]time.Time{}
	}
	r.until[of] = until
}

// Lacks asks the API server whether the dispatcher itself may create, find and
// delete objects of the kind; when not, which of these. What it could not find
// again, or delete, it must not create.
func (c *Client) Lacks(ctx context.Context, id bundle.Identity) (why string, err error) {
	resource, err := c.mapping(id)
	if err != nil {
		return "", err
	}
	of := right{id.Namespace, resource}
	if c.rights.has(of, time.Now()) {
		return "", nil
	}
	for _, verb := range []string{"create", "get", "delete"} {
		allowed, err := apiserver.MayClient(ctx, c.core.AuthorizationV1(), authorizationv1.ResourceAttributes{
			Namespace: id.Namespace, Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		})
		if err != nil {
			return "", err
		}
		if !allowed {
			return fmt.Sprintf("it may not %s %s in namespace %s; give it a ClusterRole with the label rbac.muster.dev/wrap, or have the kind removed from the queue's objectPolicy",
				verb, resource.GroupResource(), id.Namespace), nil
		}
	}
	c.rights.keep(of, time.Now().Add(rightsKept))
	return "", nil
}
