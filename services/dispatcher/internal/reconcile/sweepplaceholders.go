package reconcile

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// hasShown reports whether a pod is of a gang that shows itself or did, by its last command. What
// a tenant labels so is of none, and keeps no other gang from showing itself.
func (w *workloads) hasShown(pod kubernetes.Placeholder) bool {
	command := w.get(pod.Workload).wanted()
	return command != nil && command.Provision != nil && command.Provision.Name == pod.Request && command.Namespace == pod.Namespace
}

// sweepPlaceholders removes placeholder pods that no workload has according to queue-manager.
func (s *sweeper) sweepPlaceholders(ctx context.Context, truth Truth) {
	pods, err := s.cluster.Placeholders(ctx, "", "")
	if err != nil {
		s.logger.Warn("cannot list the placeholder pods", zap.Error(err))
	}
	known := map[string]bool{}  // by request: whether it is wanted
	lookups := map[string]int{} // by namespace
	for _, pod := range pods {
		key := string(pod.Workload) + " " + pod.Request
		wanted, asked := known[key]
		switch {
		case ctx.Err() != nil:
			return
		case asked:
		case s.wantsRequest(pod.Workload, pod.Request):
			wanted = true
		case lookups[pod.Namespace] == mostLookups:
			continue
		default:
			lookups[pod.Namespace]++
			if wanted, err = s.hasRequest(ctx, truth, pod.Workload, pod.Request); err != nil {
				return
			}
		}
		known[key] = wanted
		if !wanted {
			s.removePlaceholder(ctx, pod)
		}
	}
}

func (s *sweeper) removePlaceholder(ctx context.Context, pod kubernetes.Placeholder) {
	if err := deletePlaceholder(ctx, s.cluster, pod); err != nil {
		s.logger.Warn("cannot remove an orphaned placeholder pod", zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
		return
	}
	s.metrics.orphans.Inc()
	s.logger.Warn("orphaned placeholder pod removed", zap.String("workload", string(pod.Workload)), zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name))
}

// hideUnknown removes the pods of gangs of which there is no command, as when the stream has lost
// it, and which show themselves no more according to queue-manager. The pods of one that does go
// when its command comes again. Few of them are looked up at a time: a tenant may make any number.
func (p *pass) hideUnknown(ctx context.Context, pods []kubernetes.Placeholder) error {
	if p.truth == nil {
		return nil
	}
	known := map[string]bool{} // by request: whether it is open
	for _, pod := range pods {
		key := string(pod.Workload) + " " + pod.Request
		open, asked := known[key]
		switch {
		case pod.Workload == p.command.Workload || p.workloads.hasShown(pod):
			continue
		case asked:
		case len(known) == mostLookups:
			return nil
		default:
			asking, done := context.WithTimeout(ctx, askTimeout)
			record, err := p.truth(asking, pod.Workload)
			done()
			if err != nil {
				return fmt.Errorf("look up workload %s, which shows itself: %w", pod.Workload, err)
			}
			open = record != nil && record.Provisioning != nil && record.Provisioning.Open && record.Provisioning.Name == pod.Request
			known[key] = open
		}
		if !open {
			if err := deletePlaceholder(ctx, p.cluster, pod); err != nil {
				return err
			}
		}
	}
	return nil
}
