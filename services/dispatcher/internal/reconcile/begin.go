package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

const (
	// quotasEvery is how often the quotas of a namespace are read for a gang that does
	// not begin: each of its pods that appears has it looked at.
	quotasEvery = 2 * time.Second
	// shortFor is how long the quotas must have been short before the status has the
	// reason. The cache is behind the quotas: pods that it does not show yet are counted
	// twice.
	shortFor = 3 * quotasEvery / 2
)

// quotaReader is the API server, for the ResourceQuotas that pods of the gang meet.
type quotaReader interface {
	Quotas(ctx context.Context, namespace string, like []gang.Pod) ([]gang.Quota, error)
}

// beginning is how a gang of an attempt begins whose pods do not all exist yet.
type beginning struct {
	attempt int
	// asked is when the quotas were read last, since when they have been short, why they are.
	asked, since time.Time
	why          string
	// quotas are those under which it has begun, claim is what its missing pods will use of
	// them. Both are empty before, and when it is complete.
	quotas []gang.Quota
	claim  gang.Claim
}

// starter decides whether pods of a gang start before all of them exist.
type starter struct {
	cluster   quotaReader
	workloads *workloads
	logger    *zap.Logger
	now       func() time.Time
	mu        sync.Mutex // held from reading the claims of others to setting one
}

// early reports whether the pods of a gang that exist may start: the quotas have room for
// those that are missing. Queue-manager has reserved their nodes.
func (s *starter) early(ctx context.Context, p *pass, missing []gang.Missing) (bool, error) {
	now := s.now()
	before := p.workload.beginningOf(p.command.Attempt)
	if before.why != "" && now.Sub(before.asked) < quotasEvery {
		return false, nil
	}
	like := make([]gang.Pod, 0, len(missing))
	for _, m := range missing {
		like = append(like, m.Like)
	}
	quotas, err := s.cluster.Quotas(ctx, p.command.Namespace, like)
	s.mu.Lock()
	defer s.mu.Unlock()
	next := beginning{attempt: p.command.Attempt, asked: now, since: before.since}
	switch {
	case errors.Is(err, gang.ErrUnknownQuotas):
		if before.why == "" {
			s.logger.Warn("cannot determine whether the pods of a gang fit the quotas; starting it when all exist", append(p.fields(), zap.Error(err))...)
		}
		next.why = err.Error()
	case err != nil:
		return false, err
	case len(quotas) > 0:
		next.why = gang.Short(quotas, missing, s.claims(p.command))
	}
	switch {
	case next.why == "" && len(quotas) == 0:
		next = beginning{attempt: next.attempt} // nothing to claim
	case next.why == "":
		next.since, next.quotas, next.claim = time.Time{}, quotas, gang.ClaimOf(quotas, missing)
	case next.since.IsZero():
		next.since = now
	}
	p.workload.setBeginning(next)
	return next.why == "", nil
}

// claims are those of the other gangs of the namespace that begin.
func (s *starter) claims(of *event.GangCommand) (claims []gang.Claim) {
	for _, t := range s.workloads.all() {
		command := t.wanted()
		if command == nil || command.Workload == of.Workload || command.Namespace != of.Namespace || command.State != event.Present {
			continue
		}
		if claim := t.beginningOf(command.Attempt).claim; len(claim) > 0 {
			claims = append(claims, claim)
		}
	}
	return claims
}

// keepClaim keeps the claim of a gang that has begun: what exists is in the quotas' usage.
// Nothing is kept once all its pods exist.
func (s *starter) keepClaim(p *pass, pods []gang.Pod, sent map[string]string) {
	b := p.workload.beginningOf(p.command.Attempt)
	if b.asked.IsZero() {
		return
	}
	missing := gang.StillMissing(p.command, pods, sent)
	switch {
	case len(missing) == 0:
		b = beginning{attempt: b.attempt}
	case b.why == "":
		b.claim = gang.ClaimOf(b.quotas, missing)
	default:
		return
	}
	p.workload.setBeginning(b)
}

// nextLook is when to look again at a gang that does not begin; zero is never.
func (s *starter) nextLook(p *pass) time.Duration {
	if p.workload.beginningOf(p.command.Attempt).why == "" {
		return 0
	}
	return quotasEvery
}

// waitsFor returns why no pod of a gang starts although some exist; empty when they do, or
// when that may be because the cache is behind.
func (s *starter) waitsFor(p *pass) string {
	b := p.workload.beginningOf(p.command.Attempt)
	if b.why == "" || s.now().Sub(b.since) < shortFor {
		return ""
	}
	return b.why
}
