package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// requeueRule is what the cause of an eviction means for the next attempt.
type requeueRule struct {
	// fault: the eviction counts towards the workload's retries.
	fault bool
	// backoff is how long the next attempt waits; nil for not at all.
	backoff func(e *entry, rules workload.Rules) time.Duration
	// final: there is no next attempt.
	final bool
}

// requeueRules has every kind of reason for which a started workload is evicted. A test
// asks of each kind of reason whether it belongs here.
var requeueRules = map[workload.ReasonKind]requeueRule{
	workload.ReasonNotReady:    {fault: true, backoff: byFaults},
	workload.ReasonPodLost:     {fault: true, backoff: byFaults},
	workload.ReasonNotCreated:  {backoff: byAttempts},
	workload.ReasonNodeLost:    {},
	workload.ReasonClusterLost: {},
	workload.ReasonPlaceLost:   {},
	workload.ReasonDrained:     {},
	workload.ReasonPreempted:   {},
	workload.ReasonRestored:    {},
	workload.ReasonRequeued:    {},
	workload.ReasonExitCode:    {final: true},

	workload.ReasonCheckRetry:    {backoff: byCheck},
	workload.ReasonCheckRejected: {final: true},
}

func byFaults(e *entry, rules workload.Rules) time.Duration { return rules.Backoff(int(e.Requeues)) }

func byCheck(e *entry, _ workload.Rules) time.Duration { return backoffOfCheck(e) }

func byAttempts(e *entry, rules workload.Rules) time.Duration { return rules.Backoff(e.Attempt - 1) }
