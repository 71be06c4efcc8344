package reconcile

import (
	"context"
	"encoding/json"
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
	// Place makes a copy. One that is there already gets the owner, too.
	Place(ctx context.Context, to kubernetes.CarriedCopy) error
}

// SetCarrier sets what copies objects of other clusters, before Run. Without one none are copied.
func (r *Reconciler) SetCarrier(carrier Carrier) { r.carrier = carrier }

// reference is an object to which pods refer.
type reference struct{ kind, name string }

// fetchCarried reads what the queue carries and the manifest refers to. It comes before the creation:
// a gang without what it refers to would hold its places for nothing.
func (p *pass) fetchCarried(ctx context.Context) (copies []kubernetes.CarriedCopy, err error) {
	if p.carrier == nil || len(p.command.Carries) == 0 {
		return nil, nil
	}
	var tree any
	if err := json.Unmarshal(p.command.Manifest, &tree); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	refers := map[reference]bool{}
	collectReferences(tree, refers)
	for _, c := range p.command.Carries {
		if !refers[reference{c.Kind, c.Name}] {
			continue
		}
		from, content, err := p.carrier.Fetch(ctx, p.command.Workload, p.command.Attempt, c.Kind, c.Name)
		if err != nil {
			return nil, fmt.Errorf("%s %s of cluster %q cannot be copied: %w", c.Kind, c.Name, c.From, err)
		}
		copies = append(copies, kubernetes.CarriedCopy{Kind: c.Kind, Namespace: p.command.Namespace, Name: c.Name, From: from, Content: content})
	}
	return copies, nil
}

// ownersOfCopies are the objects that were created for the attempt.
func (p *pass) ownersOfCopies() (owners []metav1.OwnerReference) {
	if !isBundle(p.command) {
		return []metav1.OwnerReference{{APIVersion: ray.GroupVersion, Kind: p.command.Kind, Name: p.command.Name, UID: types.UID(p.status.UID)}}
	}
	for _, o := range p.status.Objects {
		owners = append(owners, metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID)})
	}
	return owners
}

// placeCarried makes the copies, which go with the objects of the gang, and returns when to try again.
func (p *pass) placeCarried(ctx context.Context, copies []kubernetes.CarriedCopy) time.Duration {
	owners := p.ownersOfCopies()
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

// keepCarried makes the copies of a gang that is there, unless this dispatcher has made them: the one
// before may have ended between the creation and the copies. It returns when to try again.
func (p *pass) keepCarried(ctx context.Context, seen observation) time.Duration {
	if p.carrier == nil || len(p.command.Carries) == 0 || seen.standing != ours || seen.deleting || p.workload.hasCarried(p.command.Attempt) {
		return 0
	}
	copies, err := p.fetchCarried(ctx)
	if err != nil {
		p.logger.Warn("cannot copy objects of other clusters; retrying", append(p.fields(), zap.Error(err))...)
		return carryAgain
	}
	if !isBundle(p.command) {
		p.status.UID = seen.uid
	}
	return p.placeCarried(ctx, copies)
}

// collectReferences finds the ConfigMaps and Secrets to which pods of a manifest refer, and maybe
// some to which they do not: of all of them the queue names those that are copied.
func collectReferences(value any, into map[reference]bool) {
	switch v := value.(type) {
	case []any:
		for _, inner := range v {
			collectReferences(inner, into)
		}
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "configMap", "configMapRef", "configMapKeyRef":
				noteReference(inner, workload.KindConfigMap, "name", into)
			case "secretRef", "secretKeyRef":
				noteReference(inner, workload.KindSecret, "name", into)
			case "secret": // of a volume, or of a source of a projected one
				noteReference(inner, workload.KindSecret, "secretName", into)
				noteReference(inner, workload.KindSecret, "name", into)
			case "imagePullSecrets":
				list, _ := inner.([]any)
				for _, one := range list {
					noteReference(one, workload.KindSecret, "name", into)
				}
			}
			collectReferences(inner, into)
		}
	}
}

func noteReference(value any, kind, field string, into map[reference]bool) {
	object, _ := value.(map[string]any)
	if name, _ := object[field].(string); name != "" {
		into[reference{kind, name}] = true
	}
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
