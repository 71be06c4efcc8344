package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

const (
	// kindsEvery is how often the kinds are read: the API server has no watch of them. A read
	// is two requests.
	kindsEvery = 10 * time.Second
	// kindsMost bounds how long everything else waits for the first read.
	kindsMost = 10 * time.Second
)

// kindsReader is what is used of discovery.DiscoveryInterface.
type kindsReader interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// watchKinds records the kinds that the cluster serves until ctx ends. It calls listed when
// they are known, or after kindsMost without an answer.
func (v *view) watchKinds(ctx context.Context, client kindsReader, listed func()) {
	late := time.AfterFunc(kindsMost, listed)
	defer late.Stop()
	next := time.NewTicker(kindsEvery)
	defer next.Stop()
	for {
		kinds, err := readKinds(ctx, client)
		if ctx.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, errTooManyKinds): // an old list would say that a new kind is not served
			v.Logger.Warn("the kinds of the cluster are not reported; every kind counts as served", zap.Error(err), zap.Duration("next", kindsEvery))
			v.target.Apply(func(p *observed.Cache) { p.SetKinds(nil) })
			listed()
		case err != nil:
			v.Logger.Warn("cannot read which kinds the cluster serves; keeping what is known", zap.Error(err), zap.Duration("next", kindsEvery))
		default:
			v.target.Apply(func(p *observed.Cache) { p.SetKinds(kinds) })
			listed()
		}
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

var errTooManyKinds = errors.New("too many")

// readKinds is servedKinds that returns when ctx ends: a discovery client takes no context, and
// waits half a minute for an API server that hangs.
func readKinds(ctx context.Context, client kindsReader) ([]workload.ObjectKind, error) {
	type answer struct {
		kinds []workload.ObjectKind
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		kinds, err := servedKinds(client)
		read <- answer{kinds, err}
	}()
	select {
	case a := <-read:
		return a.kinds, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// servedKinds returns the kinds that the API server serves, sorted. Of an API that does not
// answer, such as an aggregated one, it returns that any kind may be served.
func servedKinds(client kindsReader) ([]workload.ObjectKind, error) {
	_, lists, err := client.ServerGroupsAndResources()
	var kinds []workload.ObjectKind
	var failed *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &failed):
		for version := range failed.Groups {
			kinds = append(kinds, workload.AnyKind(version.String()))
		}
	case err != nil:
		return nil, fmt.Errorf("list the kinds of the API server: %w", err)
	}
	for _, list := range lists {
		for i := range list.APIResources {
			if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") { // a subresource
				kinds = append(kinds, workload.NewObjectKind(list.GroupVersion, r.Kind))
			}
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if len(kinds) > event.MostKinds {
		return nil, fmt.Errorf("list the kinds of the API server: there are %w: %d; at most %d are reported", errTooManyKinds, len(kinds), event.MostKinds)
	}
	return kinds, nil
}
