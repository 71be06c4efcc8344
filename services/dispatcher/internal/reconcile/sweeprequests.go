package reconcile

import (
	"context"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// mostLookups is how many requests and PodTemplates of one namespace a sweep looks up. A
// tenant that may create such objects could make any number of them.
const mostLookups = 64

// sweepRequests removes requests for nodes, and their PodTemplates, that no workload has
// according to queue-manager: left when the command to delete them was lost.
func (s *sweeper) sweepRequests(ctx context.Context, truth Truth) {
	found, err := requestObjects(ctx, s.cluster, "", "")
	if err != nil {
		s.logger.Warn("cannot list the requests for nodes", zap.Error(err))
	}
	s.sweepPlaceholders(ctx, truth)
	lookups := map[string]int{} // by namespace
	for _, object := range found {
		name := nameOfRequest(object.Wrapped)
		if name == "" || object.Deleting || s.wantsRequest(object.Workload, name) || lookups[object.Namespace] == mostLookups || ctx.Err() != nil {
			continue
		}
		lookups[object.Namespace]++
		has, err := s.hasRequest(ctx, truth, object.Workload, name)
		if err != nil {
			return
		}
		if !has {
			s.removeRequest(ctx, object)
		}
	}
}

// wantsRequest reports whether a command has the request, to keep it or to delete it.
func (s *sweeper) wantsRequest(id workload.ID, name string) bool {
	command := s.workloads.get(id).wanted()
	return command != nil && command.State != event.Forgotten && command.Provision != nil && command.Provision.Name == name
}

// hasRequest asks queue-manager whether the workload has the request.
func (s *sweeper) hasRequest(ctx context.Context, truth Truth, id workload.ID, name string) (bool, error) {
	record, err := truth.ask(ctx, id)
	if err != nil {
		s.logger.Warn("cannot look up the workload of a request for nodes; keeping the request", zap.String("workload", string(id)), zap.Error(err))
		return false, err
	}
	return record != nil && record.Provisioning != nil && record.Provisioning.Open && record.Provisioning.Name == name, nil
}

func (s *sweeper) removeRequest(ctx context.Context, object requestObject) {
	if _, err := s.cluster.DeleteItem(ctx, object.id, object.UID); err != nil {
		s.logger.Warn("cannot remove an orphaned request for nodes", zap.Stringer("object", object.id), zap.Error(err))
		return
	}
	s.metrics.orphans.Inc()
	s.logger.Warn("orphaned request for nodes removed", zap.String("workload", string(object.Workload)), zap.Stringer("object", object.id))
}
