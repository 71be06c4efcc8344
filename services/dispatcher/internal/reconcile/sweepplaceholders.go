package reconcile

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Bounds of the questions that a gang asks before it shows itself, about pods of workloads of
// which there is no command: a tenant may label any number of pods so.
const (
	mostAskedOf  = 4  // of one namespace
	mostAskedNow = 16 // of all
)

// shownPods is what the workers and the sweep share about placeholder pods.
type shownPods struct {
	making sync.Mutex // held while the pods of one gang are made

	mu sync.Mutex
	// kept are the UIDs of pods that show no gang and may not be deleted, as in a namespace of
	// no queue.
	kept map[string]bool
}

// placeholderKey is what pods of one request have in common.
type placeholderKey struct {
	namespace string
	workload  workload.ID
	request   string
}

func keyOf(pod kubernetes.Placeholder) placeholderKey {
	return placeholderKey{pod.Namespace, pod.Workload, pod.Request}
}

// shows reports whether a pod is of a gang that shows itself by its last command, and whether
// there is a command. What a tenant labels so is of none, and keeps no other gang from showing
// itself; so is what is left of a gang that has started.
func (w *workloads) shows(pod kubernetes.Placeholder) (shows, known bool) {
	command := w.get(pod.Workload).wanted()
	if command == nil || pod.Forged {
		return false, command != nil
	}
	return command.State == event.Provision && command.Provision != nil && command.Provision.Name == pod.Request && command.Namespace == pod.Namespace, true
}

// showsBy is shows according to queue-manager.
func showsBy(record *workload.Record, pod kubernetes.Placeholder) bool {
	if record == nil || record.Provisioning == nil || record.Phase != workload.Queued {
		return false
	}
	asked := record.Provisioning
	return asked.Open && asked.Placeholders() && asked.Name == pod.Request && record.Namespace == pod.Namespace
}

// mayRemove reports whether a pod is one to look up and to delete: not one that is forged, which
// others may need, is being deleted, or may not be.
func (s *shownPods) mayRemove(pod kubernetes.Placeholder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !pod.Forged && !pod.Deleting && !s.kept[pod.UID]
}

// remove deletes a pod that shows no gang. It logs once that it may not.
func (s *shownPods) remove(ctx context.Context, t podDeleter, logger *zap.Logger, pod kubernetes.Placeholder) (removed bool, err error) {
	err = deletePlaceholder(ctx, t, pod)
	if !apierrors.IsForbidden(err) && !refusedForGood(err) {
		return err == nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]bool{}
	}
	s.kept[pod.UID] = true
	logger.Warn("a pod is labelled as a placeholder pod, shows no gang, and may not be deleted; leaving it",
		zap.String("workload", string(pod.Workload)), zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
	return false, nil
}

// forgetGone forgets pods that are gone.
func (s *shownPods) forgetGone(there []kubernetes.Placeholder) {
	uids := map[string]bool{}
	for _, pod := range there {
		uids[pod.UID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(uid string, _ bool) bool { return !uids[uid] })
}

// shownLookup finds out of placeholder pods whether each is of a gang that shows itself: by its
// command, or where there is none, as when the stream has lost it, according to queue-manager. It
// asks a bounded number of questions.
type shownLookup struct {
	workloads *workloads
	truth     Truth
	most      int // questions about pods of one namespace
	mostOfAll int
	answers   map[placeholderKey]bool
	asked     map[string]int // by namespace
}

// shows reports whether a pod is of a gang that shows itself. What it has no question left for
// may be.
func (l *shownLookup) shows(ctx context.Context, pod kubernetes.Placeholder) (bool, error) {
	if shows, known := l.workloads.shows(pod); known {
		return shows, nil
	}
	if shows, known := l.answers[keyOf(pod)]; known {
		return shows, nil
	}
	if l.asked[pod.Namespace] == l.most || len(l.answers) == l.mostOfAll {
		return true, nil
	}
	l.asked[pod.Namespace]++
	record, err := l.truth.ask(ctx, pod.Workload)
	if err != nil {
		return true, fmt.Errorf("look up workload %s, of which pod %s/%s is a placeholder: %w", pod.Workload, pod.Namespace, pod.Name, err)
	}
	shows := showsBy(record, pod)
	l.answers[keyOf(pod)] = shows
	return shows, nil
}

// sweepPlaceholders removes placeholder pods that no workload has according to queue-manager.
func (s *sweeper) sweepPlaceholders(ctx context.Context, truth Truth) {
	pods, err := s.cluster.Placeholders(ctx, "", "")
	if err != nil {
		s.logger.Warn("cannot list the placeholder pods", zap.Error(err))
		return
	}
	s.shown.forgetGone(pods)
	lookup := shownLookup{s.workloads, truth, mostLookups, math.MaxInt, map[placeholderKey]bool{}, map[string]int{}}
	for _, pod := range pods {
		if ctx.Err() != nil {
			return
		}
		if !s.shown.mayRemove(pod) {
			continue
		}
		shows, err := lookup.shows(ctx, pod)
		if err != nil {
			s.logger.Warn("cannot determine whether a placeholder pod is needed; keeping it", zap.Error(err))
			return
		}
		if !shows {
			s.removePlaceholder(ctx, pod)
		}
	}
}

func (s *sweeper) removePlaceholder(ctx context.Context, pod kubernetes.Placeholder) {
	removed, err := s.shown.remove(ctx, s.cluster, s.logger, pod)
	if err != nil {
		s.logger.Warn("cannot remove an orphaned placeholder pod", zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
	}
	if removed {
		s.metrics.orphans.Inc()
		s.logger.Warn("orphaned placeholder pod removed", zap.String("workload", string(pod.Workload)), zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name))
	}
}

// hideUnknown removes the pods of gangs that show themselves no more. Few of them are looked up
// at a time, and no gang waits for the others. It returns those that show themselves, by their
// command or according to queue-manager: their turn may end a moment later, and their pods are there
// then.
func (p *pass) hideUnknown(ctx context.Context) (showing map[placeholderKey]bool, err error) {
	if p.truth == nil {
		return nil, nil
	}
	pods, err := p.cluster.Placeholders(ctx, "", "")
	if err != nil {
		return nil, err
	}
	showing = map[placeholderKey]bool{}
	lookup := shownLookup{p.workloads, p.truth, mostAskedOf, mostAskedNow, map[placeholderKey]bool{}, map[string]int{}}
	for _, pod := range pods {
		if p.isMine(pod) || !p.shown.mayRemove(pod) {
			continue
		}
		shows, err := lookup.shows(ctx, pod)
		if err != nil {
			return nil, err
		}
		if !shows {
			if _, err := p.shown.remove(ctx, p.cluster, p.logger, pod); err != nil {
				return nil, err
			}
			continue
		}
		if _, known := p.workloads.shows(pod); known || lookup.answers[keyOf(pod)] { // not one that no question was left for
			showing[keyOf(pod)] = true
		}
	}
	return showing, nil
}
