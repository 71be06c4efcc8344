package kubecontroller

import (
	"maps"
	"sync"
	"time"
)

const (
	// answersKept is for how long a yes of the API server about a user, or about the policies, is
	// taken for granted. A burst of objects asks the same again and again. Of users the dispatcher
	// asks once more before it creates anything. A policy that is deleted has an effect for a moment
	// in the API server, too.
	answersKept = 2 * time.Second
	// mostAnswers are kept before those that are too old are dropped.
	mostAnswers = 1000
)

// keptAnswers keeps for a moment which questions were answered with yes. A no is not kept: what is
// missing may be granted at any time. The zero value may be used, concurrently.
type keptAnswers[Q comparable] struct {
	mu    sync.Mutex
	until map[Q]time.Time
}

// yes reports whether a question was answered with yes a moment ago.
func (a *keptAnswers[Q]) yes(q Q, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Before(a.until[q])
}

// keep keeps a yes to a question that was asked at that time.
func (a *keptAnswers[Q]) keep(q Q, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[Q]time.Time{}
	}
	if len(a.until) >= mostAnswers {
		maps.DeleteFunc(a.until, func(_ Q, until time.Time) bool { return !asked.Before(until) })
	}
	if len(a.until) < mostAnswers {
		a.until[q] = asked.Add(answersKept)
	}
}

// creation is the question whether a user may create objects of a kind in a namespace.
type creation struct {
	user, uid, groups string // as they are written on an object
	resource          string
	namespace         string
}
