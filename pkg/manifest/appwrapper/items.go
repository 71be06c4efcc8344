package appwrapper

import (
	"errors"
	"fmt"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// item is a wrapped object in the course of being read.
type item struct {
	where    string // of the object in the AppWrapper
	number   int
	object   map[string]any
	id       bundle.Identity
	declared []declaration // v1beta1
	podSets  []podSetPath  // v1beta2
	done     []string
	operator ray.Operator
}

// podSetPath is a pod set that a v1beta2 component declares.
type podSetPath struct {
	where    string
	replicas int
	path     []string
}

// add reads one wrapped object, its pods and its demand.
func (r *reader) add(it item) error {
	it.number, it.operator = len(r.Bundle.Items), r.operator
	if it.number >= MaxItems {
		return refuse(it.where, "is one object too many", fmt.Sprintf("at most %d are accepted", MaxItems))
	}
	if err := r.identifyItem(&it); err != nil {
		return err
	}
	delete(it.object, "status") // of another life of the object
	if err := checkAmounts(it.where, "", it.object); err != nil {
		return err
	}
	wrapped := bundle.Item{Done: it.done}
	sets, err := r.pods(&it, &wrapped)
	if err != nil {
		return err
	}
	if where, what, why := kube.BadMetadata(it.object); why != "" {
		return refuse(it.where+"."+where, what, why)
	}
	extra, err := r.demand(&it, sets)
	if err != nil {
		return err
	}
	wrapped.MakesPods = len(sets) > 0
	if wrapped.Object, err = unescaped.JSON(it.object); err != nil {
		return refuse(it.where, err.Error(), "write it as JSON or YAML")
	}
	r.Bundle.Items = append(r.Bundle.Items, wrapped)
	r.PodSets = append(append(r.PodSets, sets...), extra...)
	return nil
}

// identifyItem checks what the object calls itself, and fences it in the
// AppWrapper's namespace.
func (r *reader) identifyItem(it *item) error {
	metadata, isMap := it.object["metadata"].(map[string]any)
	if !isMap {
		return refuse(it.where+".metadata", "is missing", "want an object with a name")
	}
	it.id = bundle.Identity{
		APIVersion: text(it.object, "apiVersion"), Kind: text(it.object, "kind"),
		Namespace: text(metadata, "namespace"), Name: text(metadata, "name"),
	}
	switch {
	case it.id.APIVersion == "":
		return refuse(it.where+".apiVersion", "is missing", "want the API version of the object, such as v1")
	case it.id.Kind == "":
		return refuse(it.where+".kind", "is missing", "want the kind of the object")
	case it.id.Kind == Kind:
		return refuse(it.where+".kind", "is AppWrapper", "wrap its objects instead: AppWrappers are not nested")
	case it.object["items"] != nil && len(it.id.Kind) > 4 && it.id.Kind[len(it.id.Kind)-4:] == "List", it.id.Kind == "List":
		return refuse(it.where+".kind", "is "+fault.Quote(it.id.Kind), "wrap each object on its own")
	case it.id.Name == "":
		return refuse(it.where+".metadata.name", "is missing", "want a name: it must be the same in each attempt")
	case it.id.Namespace != "" && r.Namespace != "" && it.id.Namespace != r.Namespace:
		return refuse(it.where+".metadata.namespace", "is "+fault.Quote(it.id.Namespace),
			"remove it: wrapped objects are created in the namespace of the AppWrapper, which is "+r.Namespace)
	case it.id.Namespace != "" && r.Namespace == "":
		r.Namespace = it.id.Namespace
	}
	if err := it.checkNames(metadata); err != nil {
		return err
	}
	for _, field := range []string{"ownerReferences", "finalizers"} {
		if list, isList := metadata[field].([]any); isList && len(list) > 0 {
			return refuse(it.where+".metadata."+field, "is set",
				"remove it: Muster alone decides how long the object lives")
		}
	}
	version := it.id.APIVersion
	if bundle.IsRay(it.id) {
		version = ray.GroupVersion // whichever it is written in, it is one object
	}
	identity := version + " " + it.id.Kind + " " + it.id.Name
	if first, twice := r.items[identity]; twice {
		return refuse(it.where, fmt.Sprintf("is %s %s, as %s is", it.id.Kind, fault.Quote(it.id.Name), first), "wrap each object once")
	}
	r.items[identity], r.kinds[workload.NewObjectKind(version, it.id.Kind)] = it.where, true
	return nil
}

// rayPods has package ray read the object and predict its pods.
func (r *reader) rayPods(it *item, wrapped *bundle.Item) ([]workload.PodSet, error) {
	encoded, err := unescaped.JSON(it.object)
	if err != nil {
		return nil, refuse(it.where, err.Error(), "write it as JSON or YAML")
	}
	read, err := r.operator.Read(encoded)
	if err != nil {
		if errors.Is(err, ray.ErrInvalid) {
			return nil, fmt.Errorf("%s.%w", it.where, err)
		}
		return nil, err
	}
	if r.manyRays {
		wrapped.PodSetPrefix = fmt.Sprintf("%d.", it.number)
	}
	for _, warning := range read.Warnings {
		r.warn("%s.%s", it.where, warning)
	}
	sets := read.PodSets
	for i := range sets {
		prefixNames(&sets[i], wrapped.PodSetPrefix)
	}
	if r.Life == (workload.Life{}) {
		r.Life = read.Life
	}
	return sets, nil
}

// prefixNames puts a prefix before the name of a pod set, and before those that its
// affinity names.
func prefixNames(set *workload.PodSet, prefix string) {
	set.Name = prefix + set.Name
	if set.Group != "" {
		set.Group = prefix + set.Group
	}
	for _, rule := range set.Template.Together {
		for i := range rule.PodSets {
			rule.PodSets[i] = prefix + rule.PodSets[i]
		}
	}
	for _, rule := range set.Template.Apart {
		for i := range rule.PodSets {
			rule.PodSets[i] = prefix + rule.PodSets[i]
		}
	}
}
