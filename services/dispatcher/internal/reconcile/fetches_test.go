package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
)

// TestAClusterThatIsSilentIsNotAskedAgain: no worker waits for a cluster that has just not answered,
// and others are asked meanwhile. A refusal is an answer.
func TestAClusterThatIsSilentIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	refusal := fmt.Errorf("ask: %w", &query.ProblemError{Message: "there is none"})
	for name, c := range map[string]struct {
		err    error
		silent bool
	}{
		"an object":     {nil, false},
		"a refusal":     {refusal, false},
		"no time":       {query.Busy("the dispatcher does not answer"), true},
		"no answer":     {context.DeadlineExceeded, true},
		"nobody to ask": {query.ErrNoAnswer, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, asked := time.Unix(1_700_000_000, 0), 0
			f := &fetches{now: func() time.Time { return now }}
			fetch := func(from string, err error) error {
				_, _, err = f.do(t.Context(), from, func(ctx context.Context) (string, *query.CarriedObject, error) {
					if _, bounded := ctx.Deadline(); !bounded {
						t.Error("a fetch has no end")
					}
					asked++
					return from, nil, err
				})
				return err
			}
			if err := fetch("main", c.err); !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			err := fetch("main", nil)
			if c.silent && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), "not asked again before 22:13:30")) || !c.silent && err != nil {
				t.Errorf("a moment later: %v", err)
			}
			if err := fetch("other", nil); err != nil {
				t.Errorf("another cluster: %v", err)
			}
			now = now.Add(silencePause)
			if err := fetch("main", nil); err != nil {
				t.Errorf("after the pause: %v", err)
			}
			if want := 4; c.silent && asked != want-1 || !c.silent && asked != want {
				t.Errorf("clusters were asked %d times", asked)
			}
		})
	}
}

// TestAFewObjectsAreFetchedAtOnce: of the workers a few wait for other clusters, and the others go on
// without an object.
func TestAFewObjectsAreFetchedAtOnce(t *testing.T) {
	t.Parallel()
	f, answer := &fetches{now: time.Now}, make(chan struct{})
	ended := make(chan error, fetchesAtOnce)
	began := make(chan struct{}, fetchesAtOnce)
	for range fetchesAtOnce {
		go func() {
			_, _, err := f.do(t.Context(), "main", func(context.Context) (string, *query.CarriedObject, error) {
				began <- struct{}{}
				<-answer
				return "main", nil, nil
			})
			ended <- err
		}()
	}
	for range fetchesAtOnce {
		<-began
	}
	none := func(context.Context) (string, *query.CarriedObject, error) { return "", nil, nil }
	if _, _, err := f.do(t.Context(), "other", none); !errors.Is(err, errFetches) {
		t.Errorf("one more: %v, want %v", err, errFetches)
	}
	close(answer)
	for range fetchesAtOnce {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, _, err := f.do(t.Context(), "other", none); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
