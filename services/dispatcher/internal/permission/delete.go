package permission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"
)

// delete deletes these, pods first: they are what runs. The order is by chance, so that some
// that hang do not keep the others waiting each time.
func (k *Keeper) delete(ctx context.Context, all []Held) error {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var errs failures
	for _, pods := range []bool{true, false} {
		bounded, cancel := context.WithTimeout(ctx, stopWithin)
		var group errgroup.Group
		group.SetLimit(deletesAtOnce)
		for _, h := range all {
			if (h.Kind == Pod) != pods {
				continue
			}
			group.Go(func() error {
				one, cancel := context.WithTimeout(bounded, deleteWithin)
				defer cancel()
				if err := k.cluster.Stop(one, h); err != nil {
					errs.add(err)
				} else if !h.Deleting {
					k.noteStopped()
				}
				return nil
			})
		}
		_ = group.Wait() // none of them returns an error
		cancel()
	}
	return errs.join()
}

// failures are errors, of which some are kept.
type failures struct {
	mu   sync.Mutex
	some []error
	more int
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.some) < namedMost {
		f.some = append(f.some, err)
	} else {
		f.more++
	}
}

func (f *failures) join() error {
	if f.more > 0 {
		f.some = append(f.some, fmt.Errorf("%d others fail, too", f.more))
	}
	return errors.Join(f.some...)
}
