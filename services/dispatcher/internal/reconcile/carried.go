package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// carryAgain is the pause after a copy of an object of another cluster that failed.
const carryAgain = 10 * time.Second

// Carrier copies objects of other clusters.
type Carrier interface {
	// Fetch asks queue-manager for an object that the queue of the workload carries, and returns
	// from which cluster it is.
	Fetch(ctx context.Context, id workload.ID, attempt int, kind, name string) (from string, content *query.CarriedObject, err error)
	// Place makes a copy. One that is there already gets the content and the owners, too.
	Place(ctx context.Context, to kubernetes.CarriedCopy) error
	// Own adds the owners to a copy that is there, and reports whether an object of the name is.
	Own(ctx context.Context, to kubernetes.CarriedCopy) (there bool, err error)
}

// SetCarrier sets what copies objects of other clusters, before Run. Without one none are copied.
func (r *Reconciler) SetCarrier(carrier Carrier) { r.carrier = carrier }

// carried returns what the queue carries and the manifest refers to.
func (p *pass) carried() (some []workload.Carried, err error) {
	if p.carrier == nil || len(p.command.Carries) == 0 {
		return nil, nil
	}
	tree, err := treeOf(p.command.Manifest)
	if err != nil {
		return nil, err
	}
	refers := map[reference]bool{}
	collectReferences(tree, refers)
	for _, c := range p.command.Carries {
		if refers[reference{c.Kind, c.Name}] {
			some = append(some, c)
		}
	}
	return some, nil
}

// fetchCarried reads objects of other clusters. It comes before the creation: a gang without what it
// refers to would hold its places for nothing.
func (p *pass) fetchCarried(ctx context.Context, some []workload.Carried) (copies []kubernetes.CarriedCopy, err error) {
	for _, c := range some {
		from, content, err := p.fetches.do(ctx, c.From, func(ctx context.Context) (string, *query.CarriedObject, error) {
			return p.carrier.Fetch(ctx, p.command.Workload, p.command.Attempt, c.Kind, c.Name)
		})
		if err != nil {
			return nil, fmt.Errorf("%s %s of cluster %q cannot be copied: %w", c.Kind, c.Name, c.From, err)
		}
		to := p.copyOf(c)
		to.From, to.Content = from, content
		copies = append(copies, to)
	}
	return copies, nil
}

func (p *pass) copyOf(c workload.Carried) kubernetes.CarriedCopy {
	return kubernetes.CarriedCopy{Kind: c.Kind, Namespace: p.command.Namespace, Name: c.Name}
}

// createdOwners are the objects that were created for the attempt.
func (p *pass) createdOwners() (owners []metav1.OwnerReference) {
	if !isBundle(p.command) {
		return []metav1.OwnerReference{{APIVersion: ray.GroupVersion, Kind: p.command.Kind, Name: p.command.Name, UID: types.UID(p.status.UID)}}
	}
	for _, o := range p.status.Objects {
		owners = append(owners, metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID)})
	}
	return owners
}

// placeCarried makes the copies, which go with the objects of the gang, and returns when to try again.
func (p *pass) placeCarried(ctx context.Context, copies []kubernetes.CarriedCopy, owners []metav1.OwnerReference) time.Duration {
	for _, to := range copies {
		to.Owners = owners
		if err := p.carrier.Place(ctx, to); err != nil {
			p.logger.Warn("cannot copy an object of another cluster; retrying", append(p.fields(), zap.String("object", to.Kind+" "+to.Name), zap.Error(err))...)
			return carryAgain
		}
	}
	if len(copies) > 0 {
		p.logger.Info("objects of other clusters copied", append(p.fields(), zap.Int("objects", len(copies)))...)
	}
	p.workload.noteCarried(p.command.Attempt)
	return 0
}

// keepCarried makes the copies of a gang that is there and that lack, unless this dispatcher has made
// them: the one before may have ended between the creation and the copies. A copy that is there
// stays as it is. It returns when to try again.
func (p *pass) keepCarried(ctx context.Context, seen observation) time.Duration {
	if p.carrier == nil || len(p.command.Carries) == 0 || seen.standing != ours || seen.deleting || p.workload.hasCarried(p.command.Attempt) {
		return 0
	}
	owners := seen.owners
	if len(owners) == 0 { // nothing of the bundle is read again
		owners = p.createdOwners()
	}
	copies, err := p.missingCarried(ctx, owners)
	switch {
	case errors.Is(err, errFetches):
		return fetchSoon
	case err != nil:
		p.logger.Warn("cannot copy objects of other clusters; retrying", append(p.fields(), zap.Error(err))...)
		return carryAgain
	}
	return p.placeCarried(ctx, copies, owners)
}

// missingCarried fetches what is not in the namespace yet.
func (p *pass) missingCarried(ctx context.Context, owners []metav1.OwnerReference) ([]kubernetes.CarriedCopy, error) {
	some, err := p.carried()
	if err != nil {
		return nil, err
	}
	var missing []workload.Carried
	for _, c := range some {
		to := p.copyOf(c)
		to.Owners = owners
		there, err := p.carrier.Own(ctx, to)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", c.Kind, c.Name, err)
		}
		if !there {
			missing = append(missing, c)
		}
	}
	return p.fetchCarried(ctx, missing)
}

// hasCarried reports whether all copies for the attempt were made by this dispatcher.
func (t *tracked) hasCarried(attempt int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.carried == attempt
}

func (t *tracked) noteCarried(attempt int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.carried = attempt
}
