package engine

import (
	"fmt"
	"sync"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// answerTo reduces an answer to what a tenant may see.
func answerTo(r query.ExplainRequest, found workload.Explanation, err error) (query.ExplainAnswer, error) {
	if r.For != "" {
		found = found.ForTenant()
	}
	answer := query.ExplainAnswer{Explanation: found}
	if r.Certificate {
		answer.NoCertificate = "it does not wait"
	}
	return answer, err
}

// limits bound the questions that wait, of each caller and of all.
type limits struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

func newLimits() *limits { return &limits{of: map[string]int{}} }

// admit admits a question; the caller calls done when it has been answered.
func (l *limits) admit(caller string, r query.ExplainRequest) (done func(), err error) {
	if r.For != "" { // intake asks for many
		caller += "/" + r.For
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.of[caller] >= maxQuestionsPerCaller:
		return nil, query.Busy(fmt.Sprintf("too many questions: %d of yours wait for their answers; try again in a few seconds", l.of[caller]))
	case l.all >= maxQuestions:
		return nil, query.Busy(fmt.Sprintf("too many questions: %d of all callers wait for their answers; try again in a few seconds", l.all))
	}
	l.of[caller]++
	l.all++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		if l.of[caller]--; l.of[caller] == 0 {
			delete(l.of, caller)
		}
	}, nil
}
