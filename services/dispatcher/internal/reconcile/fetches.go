package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"muster.dev/muster/pkg/message/query"
)

const (
	// fetchesAtOnce bounds the objects that are fetched at once: a worker waits for each, and a
	// cluster that is silent must not take all of them.
	fetchesAtOnce = 4
	// fetchWithin bounds one of them. Queue-manager waits for the other cluster for 5 seconds.
	fetchWithin = 8 * time.Second
	// silencePause is for how long a cluster is not asked that did not answer.
	silencePause = 10 * time.Second
	// fetchSoon is when a workload is looked at again for which nothing could be fetched because
	// others were.
	fetchSoon = time.Second
)

// errFetches: as many objects as may be are being fetched.
var errFetches = errors.New("others are being fetched")

// fetches bounds what is asked of other clusters. It may be used concurrently.
type fetches struct {
	now func() time.Time

	mu     sync.Mutex
	open   int
	silent map[string]silence // by cluster
}

// silence is until when a cluster is not asked, and what came of the last question.
type silence struct {
	until time.Time
	why   error
}

// do fetches an object of a cluster, unless the cluster was silent a moment ago.
func (f *fetches) do(ctx context.Context, from string, fetch func(context.Context) (string, *query.CarriedObject, error)) (string, *query.CarriedObject, error) {
	if err := f.begin(from); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	by, content, err := fetch(ctx)
	f.end(from, err)
	return by, content, err
}

func (f *fetches) begin(from string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, is := f.silent[from]; is && f.now().Before(was.until) {
		return fmt.Errorf("not asked again before %s: %w", was.until.UTC().Format(time.TimeOnly), was.why)
	}
	if f.open >= fetchesAtOnce {
		return errFetches
	}
	f.open++
	return nil
}

func (f *fetches) end(from string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	delete(f.silent, from)
	if !isSilence(err) {
		return
	}
	if f.silent == nil {
		f.silent = map[string]silence{}
	}
	f.silent[from] = silence{f.now().Add(silencePause), err}
}

// isSilence reports whether there was no answer in time, or none but that it may be asked again later. A
// refusal is an answer.
func isSilence(err error) bool {
	var problem *query.ProblemError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, query.ErrNoAnswer) || errors.As(err, &problem) && problem.Busy
}
