package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Truth asks queue-manager for a workload; nil when it has none.
type Truth func(ctx context.Context, id workload.ID) (*workload.Record, error)

// askTimeout bounds a question to queue-manager.
const askTimeout = 5 * time.Second

// ask asks for a workload, for as long as a question may take.
func (t Truth) ask(ctx context.Context, id workload.ID) (*workload.Record, error) {
	asking, done := context.WithTimeout(ctx, askTimeout)
	defer done()
	return t(asking, id)
}

// sweepAPI is the API server, to check and delete what the sweep finds.
type sweepAPI interface {
	podDeleter
	requestAPI
	objectAPI
	DeleteItem(ctx context.Context, id bundle.Identity, uid string) (gone bool, err error)
	OrphanedPods(ctx context.Context, id workload.ID, pods []gang.Pod) ([]gang.Pod, error)
}

// sweepCache lists all that carries our labels.
type sweepCache interface {
	Objects() []kubernetes.Object
	Workloads() []workload.ID
	Pods(id workload.ID) []gang.Pod
}

// sweeper removes what carries our labels and belongs to no live workload: left by a
// failure that nothing else has mended. That the stream of commands has nothing of it
// proves nothing, the stream may have been lost; queue-manager, which has the truth, is
// asked, and without an answer nothing is done. Sweeps come one after the other.
type sweeper struct {
	workloads *workloads
	shown     *shownPods
	cluster   sweepAPI
	cache     sweepCache
	look      func(workload.ID)
	logger    *zap.Logger
	metrics   *Metrics
	now       func() time.Time
	askedTo   workload.ID // the last workload whose turn it was to be asked about
}

func (s *sweeper) sweep(ctx context.Context, truth Truth) {
	s.workloads.dropForgotten(s.now())
	s.confirmCommands(ctx, truth)
	for _, object := range s.cache.Objects() {
		if s.isKnown(object.Workload, object.Attempt) || !object.Stamped || object.Deleting || isKept(&object) || ctx.Err() != nil {
			continue // known, not made by Muster, on its way out, or to be read
		}
		holds, err := s.holdsPlaces(ctx, truth, object.Workload, object.Attempt)
		if err != nil {
			return
		}
		if !holds {
			s.removeOrphan(ctx, object)
		}
	}
	s.sweepPods(ctx, truth)
	s.sweepRequests(ctx, truth)
}

// isKept reports whether it is a finished job that its owner may want to read. One in the place of a
// user's object is read at that.
func isKept(object *kubernetes.Object) bool { return object.Outcome != "" && !object.Home }

// isKnown reports whether there is a command for the attempt, or for one after
// which it does not come.
func (s *sweeper) isKnown(id workload.ID, attempt int) bool {
	command := s.workloads.get(id).wanted()
	return command != nil && command.State != event.Forgotten && attempt >= command.Attempt
}

// holdsPlaces asks queue-manager whether the workload has places in that attempt, or in an earlier
// one, of which queue-manager has not sent a command yet.
func (s *sweeper) holdsPlaces(ctx context.Context, truth Truth, id workload.ID, attempt int) (bool, error) {
	record, err := truth.ask(ctx, id)
	if err != nil {
		s.logger.Warn("cannot look up the workload of an object; keeping the object", zap.String("workload", string(id)), zap.Error(err))
		return false, err
	}
	return record != nil && record.Holding && record.Attempt <= attempt, nil
}

func (s *sweeper) removeOrphan(ctx context.Context, cached kubernetes.Object) {
	object, err := s.cluster.Get(ctx, cached.Kind, cached.Namespace, cached.Name)
	if err == nil && (object == nil || object.UID != cached.UID || object.Workload != cached.Workload || !object.Stamped || isKept(object)) {
		return // it is not any more what the cache shows
	}
	if err == nil {
		err = s.cluster.Delete(ctx, *object)
	}
	if err != nil {
		s.logger.Warn("cannot remove an orphaned object", zap.String("workload", string(cached.Workload)), zap.Error(err))
		return
	}
	s.metrics.orphans.Inc()
	s.logger.Warn("orphaned object removed", zap.String("workload", string(cached.Workload)),
		zap.String("kind", cached.Kind), zap.String("namespace", cached.Namespace), zap.String("name", cached.Name))
}

// sweepPods removes pods that carry all of our labels, belong to no live workload
// and have no object that makes them: left when a user deletes an object and has
// its pods stay.
func (s *sweeper) sweepPods(ctx context.Context, truth Truth) {
	for _, id := range s.cache.Workloads() {
		var suspects []gang.Pod
		for _, pod := range s.cache.Pods(id) {
			if pod.Attempt > 0 && pod.PodSet != "" && !pod.Deleting && !pod.Ended && !s.isKnown(id, pod.Attempt) && mayBeOrphan(pod) {
				suspects = append(suspects, pod)
			}
		}
		if len(suspects) == 0 || ctx.Err() != nil {
			continue
		}
		latest := slices.MaxFunc(suspects, func(a, b gang.Pod) int { return cmp.Compare(a.Attempt, b.Attempt) })
		holds, err := s.holdsPlaces(ctx, truth, id, latest.Attempt)
		if err != nil {
			return
		}
		if !holds {
			s.removeOrphanedPods(ctx, id, suspects)
		}
	}
}

// mayBeOrphan reports whether nothing, or a RayCluster, makes such pods; those of
// other controllers are not Muster's.
func mayBeOrphan(pod gang.Pod) bool {
	return pod.Controller.Kind == "" || pod.Controller.Kind == workload.KindRayCluster
}

func (s *sweeper) removeOrphanedPods(ctx context.Context, id workload.ID, suspects []gang.Pod) {
	orphans, err := s.cluster.OrphanedPods(ctx, id, suspects)
	if err != nil {
		s.logger.Warn("cannot look up the workload of pods; keeping the pods", zap.String("workload", string(id)), zap.Error(err))
		return
	}
	for _, pod := range orphans {
		if err := s.cluster.DeletePod(ctx, pod, false); err != nil {
			s.logger.Warn("cannot remove an orphaned pod", zap.String("workload", string(id)), zap.String("pod", pod.Name), zap.Error(err))
			continue
		}
		s.metrics.orphans.Inc()
		s.logger.Warn("orphaned pod removed", zap.String("workload", string(id)),
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name))
	}
}
