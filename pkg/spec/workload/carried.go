package workload

import (
	"regexp"

	"muster.dev/muster/pkg/spec/fault"
)

// Kinds of objects that are carried to other clusters.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// MostCarried bounds the objects that a queue carries.
const MostCarried = 16

// Carried is an object of a cluster that gangs of a queue may need in others. A gang whose pods
// refer to it, and that runs in another cluster, gets a copy there, in its own namespace.
type Carried struct {
	// Kind is KindConfigMap or KindSecret.
	Kind string `json:"kind"`
	// Name of the object, which is in the namespace of the gang.
	Name string `json:"name"`
	// From is the cluster that has it.
	From string `json:"from"`
}

// objectName is a name of an object as Kubernetes has it.
var objectName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)

// ValidateCarried returns what of the list cannot be, as a fault.List.
func ValidateCarried(list []Carried) error {
	var faults fault.List
	if len(list) > MostCarried {
		faults.Add("", "has %d objects; want at most %d", len(list), MostCarried)
	}
	type key struct{ kind, name string }
	seen := map[key]bool{}
	for i, c := range list {
		at := fault.Index("", i)
		if c.Kind != KindConfigMap && c.Kind != KindSecret {
			faults.Add(at+".kind", "%q: want %s or %s", c.Kind, KindConfigMap, KindSecret)
		}
		if !objectName.MatchString(c.Name) {
			faults.Add(at+".name", "%q: want the name of an object in Kubernetes", c.Name)
		}
		if !ValidName(c.From) {
			faults.Add(at+".from", "%q: want the name of a cluster", c.From)
		}
		if seen[key{c.Kind, c.Name}] {
			faults.Add(at, "%s %q is a duplicate", c.Kind, c.Name)
		}
		seen[key{c.Kind, c.Name}] = true
	}
	return faults.Err()
}

// CarriedTo returns the objects that gangs of the queue get copies of in a cluster.
func (r Rules) CarriedTo(cluster string) (some []Carried) {
	for _, c := range r.Carries {
		if c.From != cluster {
			some = append(some, c)
		}
	}
	return some
}
