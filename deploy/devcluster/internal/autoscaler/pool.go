package autoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

// The pools are in this ConfigMap, a key each: what runs reads it again when it changes.
const (
	poolsNamespace = metav1.NamespaceSystem
	poolsName      = "devcluster-pools"
)

// maxPoolNodes keeps a typing error from filling the memory.
const maxPoolNodes = 5000

// The classes of requests that are played each in its own way. A request of any other class
// is played like queuedProvisioning.
const (
	// queuedProvisioning adds all nodes of a request for it alone, and is Provisioned when
	// they are there.
	queuedProvisioning = "queued-provisioning.gke.io"
	// bestEffortAtomic counts nodes that exist, and is Provisioned when the others are ordered.
	bestEffortAtomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
	// checkCapacity looks whether nodes that exist hold the pods, and adds none.
	checkCapacity = "check-capacity.autoscaling.x-k8s.io"
)

// Classes of requests that pools answer when they name none.
var defaultClasses = []string{queuedProvisioning, bestEffortAtomic, checkCapacity}

// Pool is a number of like nodes that comes and goes with what is asked for.
type Pool struct {
	Name string `json:"name"`
	// Template is a node of the pool; its count does not matter.
	Template fleet.Group `json:"template"`
	Min      int         `json:"min"`
	Max      int         `json:"max"`
	// Stock is how many nodes the provider has now; below zero as many as are wanted.
	Stock int `json:"stock"`
	// Delay is how long nodes take to come.
	Delay metav1.Duration `json:"delay"`
	// Idle is how long a node is kept that nothing uses; zero keeps it.
	Idle metav1.Duration `json:"idle"`
	// Booking is how long nodes are kept for a request; then it has BookingExpired.
	// Zero keeps them until the request is deleted.
	Booking metav1.Duration `json:"booking"`
	// Fail is how many of the next requests fail.
	Fail int `json:"fail"`
	// Missing is how many nodes of a request never come, although it is Provisioned.
	Missing int `json:"missing"`
	// Pending adds nodes for pods that the scheduler finds no node for, as many as there is
	// room for.
	Pending bool `json:"pending"`
	// Classes of the requests that it answers.
	Classes []string `json:"classes,omitempty"`
}

// Validate returns all faults of the pool.
func (p Pool) Validate() error {
	var faults []error
	fail := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, message := range validation.IsDNS1123Label(p.Name) {
		fail("name %q: %s", p.Name, message)
	}
	if p.Min < 0 || p.Max < p.Min || p.Max > maxPoolNodes {
		fail("min %d and max %d: want 0 <= min <= max <= %d", p.Min, p.Max, maxPoolNodes)
	}
	if p.Delay.Duration < 0 || p.Idle.Duration < 0 || p.Booking.Duration < 0 {
		fail("delay %s, idle %s and booking %s: must not be negative", p.Delay.Duration, p.Idle.Duration, p.Booking.Duration)
	}
	if p.Fail < 0 || p.Missing < 0 {
		fail("fail %d and missing %d: must not be negative", p.Fail, p.Missing)
	}
	template := p.Template
	template.Count = &p.Max // whose names have to be different
	if err := template.Validate(); err != nil {
		fail("template: %w", err)
	}
	return errors.Join(faults...)
}

func (p Pool) answers(class string) bool {
	if len(p.Classes) == 0 {
		return slices.Contains(defaultClasses, class)
	}
	return slices.Contains(p.Classes, class)
}

// Pools returns the pools of the instance, in the order of their names.
func Pools(ctx context.Context, client kubernetes.Interface) ([]Pool, error) {
	stored, err := client.CoreV1().ConfigMaps(poolsNamespace).Get(ctx, poolsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pools: %w", err)
	}
	return poolsOf(stored)
}

func poolsOf(stored *corev1.ConfigMap) ([]Pool, error) {
	var pools []Pool
	for _, name := range slices.Sorted(maps.Keys(stored.Data)) {
		var pool Pool
		if err := json.Unmarshal([]byte(stored.Data[name]), &pool); err != nil {
			return nil, fmt.Errorf("reading pool %q: %w", name, err)
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

// Add stores a new pool.
func Add(ctx context.Context, client kubernetes.Interface, pool Pool) error {
	if err := pool.Validate(); err != nil {
		return fmt.Errorf("pool %q: %w", pool.Name, err)
	}
	return change(ctx, client, func(stored map[string]string) error {
		if _, there := stored[pool.Name]; there {
			return fmt.Errorf("pool %q exists", pool.Name)
		}
		return put(stored, pool)
	})
}

// Set changes a pool; edit gets the stored one.
func Set(ctx context.Context, client kubernetes.Interface, name string, edit func(*Pool)) error {
	return change(ctx, client, func(stored map[string]string) error {
		text, there := stored[name]
		if !there {
			return fmt.Errorf("there is no pool %q (there are %v)", name, slices.Sorted(maps.Keys(stored)))
		}
		var pool Pool
		if err := json.Unmarshal([]byte(text), &pool); err != nil {
			return fmt.Errorf("reading pool %q: %w", name, err)
		}
		edit(&pool)
		if err := pool.Validate(); err != nil {
			return fmt.Errorf("pool %q: %w", name, err)
		}
		return put(stored, pool)
	})
}

// Remove removes a pool; its nodes stay.
func Remove(ctx context.Context, client kubernetes.Interface, name string) error {
	return change(ctx, client, func(stored map[string]string) error {
		if _, there := stored[name]; !there {
			return fmt.Errorf("there is no pool %q (there are %v)", name, slices.Sorted(maps.Keys(stored)))
		}
		delete(stored, name)
		return nil
	})
}

func put(stored map[string]string, pool Pool) error {
	text, err := json.Marshal(pool)
	if err != nil {
		return fmt.Errorf("encoding pool %q: %w", pool.Name, err)
	}
	stored[pool.Name] = string(text)
	return nil
}

func change(ctx context.Context, client kubernetes.Interface, edit func(stored map[string]string) error) error {
	configMaps := client.CoreV1().ConfigMaps(poolsNamespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, err := configMaps.Get(ctx, poolsName, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if absent {
			stored, err = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: poolsNamespace, Name: poolsName}}, nil
		}
		if err != nil {
			return fmt.Errorf("reading the pools: %w", err)
		}
		if stored.Data == nil {
			stored.Data = map[string]string{}
		}
		if err := edit(stored.Data); err != nil {
			return err
		}
		if absent {
			_, err = configMaps.Create(ctx, stored, metav1.CreateOptions{})
		} else {
			_, err = configMaps.Update(ctx, stored, metav1.UpdateOptions{})
		}
		return err
	})
}
