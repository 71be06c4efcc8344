package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// wrappedAPI is the API server, for wrapped objects of any kind.
type wrappedAPI interface {
	CreateItem(ctx context.Context, id bundle.Identity, manifest json.RawMessage) (uid string, err error)
	GetItem(ctx context.Context, id bundle.Identity) (*kubernetes.Wrapped, error)
	DeleteItem(ctx context.Context, id bundle.Identity, uid string) (gone bool, err error)
}

// isBundle reports whether the workload has several objects.
func isBundle(command *event.GangCommand) bool { return command.Kind == workload.KindAppWrapper }

// Wrapped objects are read again after a pod of theirs has ended, when its controller
// has had time to write that down, and now and then.
const (
	bundleSoon = time.Second
	bundleLate = 15 * time.Second
)

// wrappedObjects are the objects that an AppWrapper wraps.
type wrappedObjects struct {
	bundle bundle.Bundle
	items  []*wrappedItem
}

// readWrapped reads the objects from the command. Every command but the last has them.
func readWrapped(command *event.GangCommand) (*wrappedObjects, error) {
	decoded, err := bundle.Decode(command.Manifest)
	if err != nil {
		return nil, err
	}
	w := &wrappedObjects{bundle: decoded}
	for _, item := range decoded.Items {
		id, err := item.Identity()
		id.Namespace = command.Namespace
		w.items = append(w.items, &wrappedItem{bundle: decoded, item: item, id: id, err: err})
	}
	return w, nil
}

func (w *wrappedObjects) soon() time.Duration { return bundleSoon }

func (w *wrappedObjects) parts() []part {
	parts := make([]part, 0, len(w.items))
	for _, item := range w.items {
		parts = append(parts, item)
	}
	return parts
}

// nextLook is soon while something is about to happen.
func (w *wrappedObjects) nextLook(p *pass) time.Duration {
	pods := p.cache.Pods(p.command.Workload)
	moving := func(p gang.Pod) bool { return p.Ended || p.Deleting || p.Gated || p.Node == "" }
	if len(pods) == 0 || slices.ContainsFunc(pods, moving) {
		return bundleSoon
	}
	return bundleLate
}

func (w *wrappedObjects) noteCreated(p *pass, began time.Time) {
	p.metrics.created.Observe(p.now().Sub(began).Seconds())
	p.trace("objects created", began, nil)
	p.logger.Info("objects created", append(p.fields(), zap.Int("objects", len(w.items)))...)
}

// observe reads the objects that make pods or come to an end, uncached.
func (w *wrappedObjects) observe(ctx context.Context, p *pass) (observation, error) {
	switch {
	case p.status.Outcome != "":
		return observation{standing: ended, outcome: p.status.Outcome, message: p.status.Message}, nil
	case !p.status.Created:
		return observation{standing: absent}, nil
	}
	seen := observation{standing: ours}
	annotated, ending, done := w.anyAnnotated(), 0, []string{}
	left := map[string]int{} // pods of objects of which some have ended for good
	var saved []time.Time    // when the objects with pods have saved their work; zero is the earliest
	byPods := w.savedByPods(p)
	for _, one := range w.items {
		if !one.item.MakesPods && len(one.item.Done) == 0 {
			continue
		}
		found, err := one.find(ctx, p)
		var next *laterError
		if errors.As(err, &next) {
			return observation{standing: later, object: next.object}, nil
		}
		if err != nil {
			return observation{}, err
		}
		if found == nil {
			return observation{standing: gone, message: fmt.Sprintf("%s is gone", one.id)}, nil
		}
		if seen.message == "" {
			seen.message = found.Message
		}
		seen.owners = append(seen.owners, ownerOf(one.id, found.UID))
		if one.item.MakesPods {
			saved = append(saved, laterOf(found.LastCheckpoint, byPods[one]))
			maps.Copy(left, one.item.Remaining(found.Content))
		}
		if annotated && len(one.item.Done) == 0 {
			continue // annotations name the objects that count
		}
		ending++
		switch end, why := one.item.Ended(found.Content); end {
		case bundle.Failed:
			return observation{standing: ended, outcome: event.OutcomeFailed, message: why}, nil
		case bundle.Succeeded:
			done = append(done, why)
		}
	}
	if ending > 0 && len(done) == ending {
		return observation{standing: ended, outcome: event.OutcomeSucceeded, message: strings.Join(done, "; ")}, nil
	}
	if len(saved) > 0 {
		seen.checkpoint = slices.MinFunc(saved, time.Time.Compare)
	}
	seen.sizes, seen.keeps = w.sizes(p, left)
	seen.announced = w.announced(p)
	return seen, nil
}

// anyAnnotated reports whether the end of some object is given by an annotation; then those
// objects alone count.
func (w *wrappedObjects) anyAnnotated() bool {
	return slices.ContainsFunc(w.items, func(i *wrappedItem) bool { return len(i.item.Done) > 0 })
}

// announced are the wrapped Ray objects. What reads the time of an eviction on other
// objects is not known.
func (w *wrappedObjects) announced(p *pass) (objects []*kubernetes.Object) {
	for _, one := range w.items {
		if one.err != nil || !bundle.IsRay(one.id) {
			continue
		}
		object := p.cache.Object(one.id.Kind, one.id.Namespace, one.id.Name)
		if object != nil && object.Workload == p.command.Workload && object.Attempt == p.command.Attempt && !object.Deleting {
			objects = append(objects, object)
		}
	}
	return objects
}

// remove deletes the objects, the last first. What fails for one does not keep the
// others.
func (w *wrappedObjects) remove(ctx context.Context, p *pass) (left int, err error) {
	var failed []error
	var later *laterError
	for _, one := range slices.Backward(w.items) {
		if one.err != nil {
			continue // it was never created
		}
		switch gone, err := one.remove(ctx, p); {
		case errors.As(err, &later):
			left++
		case err != nil:
			failed = append(failed, err)
		case !gone:
			left++
		}
	}
	if later != nil && len(failed) == 0 {
		return left, later
	}
	return left, errors.Join(failed...)
}
