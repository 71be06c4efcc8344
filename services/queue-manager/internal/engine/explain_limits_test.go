package engine

import (
	"errors"
	"fmt"
	"testing"

	"muster.dev/muster/pkg/message/query"
)

// TestQuestionsAreLimited: the waiting questions of each caller are bounded, every user that intake
// asks for is a caller, and so are those of all together.
func TestQuestionsAreLimited(t *testing.T) {
	t.Parallel()
	l := newLimits()
	busy := func(err error) bool {
		var problem *query.ProblemError
		return errors.As(err, &problem) && problem.Busy
	}
	var all []func()
	take := func(caller, who string) error {
		done, err := l.admit(caller, query.ExplainRequest{For: who})
		if err == nil {
			all = append(all, done)
		}
		return err
	}
	for range maxQuestionsPerCaller {
		if err := take("a", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := take("a", ""); !busy(err) {
		t.Errorf("one caller may have more: %v", err)
	}
	if err := take("a", "http/vip"); err != nil {
		t.Errorf("whom another asks for is refused: %v", err)
	}
	for i := 0; len(all) < maxQuestions; i++ {
		if err := take(fmt.Sprint("other-", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := take("late", ""); !busy(err) {
		t.Errorf("all callers may have more: %v", err)
	}
	for _, done := range all {
		done()
	}
	if err := take("a", ""); err != nil || len(l.of) != 1 || l.all != 1 {
		t.Errorf("answered questions count: %v, %v, %d", err, l.of, l.all)
	}
}
