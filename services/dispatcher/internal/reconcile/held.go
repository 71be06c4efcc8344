package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// heldUID is the UID of the object that is to be released instead of created;
// empty when there is none.
func heldUID(manifest json.RawMessage) string {
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(manifest, &object) != nil {
		return "" // it was stamped a moment ago
	}
	return object.Metadata.Annotations[kube.HeldKey]
}

// release lets an object go that was created by somebody and held. When it is
// gone its workload is cancelled like one whose object was deleted.
func (r *Reconciler) release(ctx context.Context, command *event.GangDesired, status event.GangStatus, uid string, manifest json.RawMessage) (time.Duration, error) {
	began := r.now()
	done, err := r.cluster.Release(ctx, command.Kind, uid, manifest)
	r.trace(command, "object released", began, err)
	switch {
	case errors.Is(err, kubernetes.ErrNotHeld), err != nil && refusedForGood(err),
		err != nil && doubtful(err) && r.queue.NumRequeues(command.Workload) >= doubts:
		return r.refuse(ctx, status, err)
	case err != nil:
		return 0, err
	case !done:
		status.Gone = true
		return r.awaitRelease(ctx, command, status)
	}
	r.logger.Info("object released", zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
		zap.String("kind", command.Kind), zap.String("namespace", command.Namespace), zap.String("name", command.Name))
	status.Created, status.UID = true, uid
	return 0, r.tell(ctx, status)
}
