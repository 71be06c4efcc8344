package appwrapper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
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
}

// podSetPath is a pod set that a v1beta2 component declares.
type podSetPath struct {
	where    string
	replicas int
	path     []string
}

// add reads one wrapped object, its pods and its demand.
func (r *reader) add(it item) error {
	it.number = len(r.Bundle.Items)
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
	if wrapped.Object, err = encode(it.object); err != nil {
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
	r.items[identity] = it.where
	return nil
}

// rayPods has package ray read the object and predict its pods.
func (r *reader) rayPods(it *item, wrapped *bundle.Item) ([]workload.PodSet, error) {
	encoded, err := encode(it.object)
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

// demand compares what is declared with what the templates say, and returns room
// for what is declared beyond them.
func (r *reader) demand(it *item, sets []workload.PodSet) ([]workload.PodSet, error) {
	if len(it.declared) == 0 {
		if len(sets) == 0 && !podless(it.id) {
			r.warn("%s: Muster does not know which pods a %s makes: nothing is reserved for them; declare them in custompodresources (v1beta1) or podSets (v1beta2)",
				it.where, it.id.Kind)
		}
		return nil, nil
	}
	declared, known := resource.List{}, resource.List{}
	replicas := 0
	for _, d := range it.declared {
		replicas += d.replicas
		declared = declared.Plus(d.each.Times(int64(d.replicas)))
	}
	for _, set := range sets {
		known = known.Plus(set.Template.Requests.Times(int64(set.Count)))
	}
	if len(sets) == 0 {
		return r.declaredSets(it), nil
	}
	extra := resource.List{}
	for _, name := range declared.Names() {
		if name == resource.Pods {
			continue
		}
		if beyond := declared[name] - known[name]; beyond > 0 {
			extra[name] = beyond
		}
	}
	for _, name := range known.Names() {
		if name != resource.Pods && declared[name] < known[name] {
			r.warn("%s.custompodresources declare %s %s, but the pods of %s %s ask for %s: that is reserved",
				it.where, name, resource.Format(name, declared[name]), it.id.Kind, it.id.Name, resource.Format(name, known[name]))
		}
	}
	if len(extra) == 0 {
		return nil, nil
	}
	return spread(fmt.Sprintf("%d.declared", it.number), extra, int64(replicas)), nil
}

// spread divides amounts over pods, so that the sum is exact: the first pods get one unit
// more of what the number of pods does not divide. Pods that are alike are one set; pods
// that would get nothing are left out.
func spread(name string, total resource.List, pods int64) []workload.PodSet {
	ends := []int64{pods} // of runs of pods that are alike
	for _, amount := range total {
		if rest := amount % pods; rest > 0 {
			ends = append(ends, rest)
		}
	}
	slices.Sort(ends)
	var sets []workload.PodSet
	first := int64(0)
	for _, end := range slices.Compact(ends) {
		each := resource.List{}
		for _, of := range total.Names() {
			amount := total[of] / pods
			if first < total[of]%pods {
				amount++
			}
			if amount > 0 {
				each[of] = amount
			}
		}
		if len(each) > 0 {
			each[resource.Pods] = 1
			sets = append(sets, declaredSet(fmt.Sprintf("%s-%d", name, len(sets)), int(end-first), each))
		}
		first = end
	}
	if len(sets) == 1 {
		sets[0].Name = name
	}
	return sets
}

// declaredSets are the pods of an object that makes them in its own way.
func (r *reader) declaredSets(it *item) []workload.PodSet {
	var sets []workload.PodSet
	for i, d := range it.declared {
		if d.replicas == 0 {
			continue
		}
		each := d.each.Plus(resource.List{resource.Pods: 1})
		sets = append(sets, declaredSet(fmt.Sprintf("%d.declared-%d", it.number, i), d.replicas, each))
	}
	r.warn("%s: room is kept for the declared pods of %s %s, but Muster does not know them: it cannot send them to that room",
		it.where, it.id.Kind, it.id.Name)
	return sets
}

// declaredSet is room that is reserved without waiting for pods.
func declaredSet(name string, count int, each resource.List) workload.PodSet {
	return workload.PodSet{Name: name, Role: RoleDeclared, Count: count, Later: count, Template: workload.Template{Requests: each}}
}

// encode writes JSON with sorted keys, characters as they are.
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
