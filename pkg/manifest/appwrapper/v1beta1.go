package appwrapper

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// declaration is an entry of custompodresources.
type declaration struct {
	replicas int
	each     resource.List
}

// v1beta1 reads MCAD's spec. What MCAD reads acts here, too; what it accepts and
// ignores earns a warning.
func (r *reader) v1beta1(spec map[string]any) error {
	priority, err := r.number(spec, "spec", "priority", math.MinInt32, math.MaxInt32)
	if err != nil {
		return err
	}
	r.Priority = int32(priority)
	r.idle("spec", spec, "priority", "schedulingSpec", "resources")
	resources, err := object("spec.resources", spec["resources"], "GenericItems, a list of wrapped objects")
	if err != nil {
		return err
	}
	r.idle("spec.resources", resources, "GenericItems")
	if old, isList := resources["Items"].([]any); isList && len(old) > 0 {
		return refuse("spec.resources.Items", fmt.Sprintf("has %d entries", len(old)), "wrap the objects in GenericItems: no MCAD since 2023 reads Items")
	}
	list, err := wrappedObjects("spec.resources.GenericItems", resources["GenericItems"], "generictemplate")
	if err != nil {
		return err
	}
	objects := make([]map[string]any, len(list))
	for i, value := range list {
		where := fmt.Sprintf("spec.resources.GenericItems[%d]", i)
		generic, err := object(where, value, "generictemplate with the wrapped object")
		if err != nil {
			return err
		}
		if objects[i], err = object(where+".generictemplate", generic["generictemplate"], "the wrapped object"); err != nil {
			return err
		}
	}
	r.countRays(objects)
	for i, value := range list {
		if err := r.genericItem(fmt.Sprintf("spec.resources.GenericItems[%d]", i), value, objects[i]); err != nil {
			return err
		}
	}
	return r.scheduling(spec)
}

func (r *reader) countRays(objects []map[string]any) {
	rays := 0
	for _, object := range objects {
		if bundle.IsRay(bundle.Identity{APIVersion: text(object, "apiVersion"), Kind: text(object, "kind")}) {
			rays++
		}
	}
	r.manyRays = rays > 1
}

func (r *reader) genericItem(where string, value any, object map[string]any) error {
	generic, _ := value.(map[string]any)
	r.idle(where, generic, "generictemplate", "custompodresources", "completionstatus", "replicas")
	if n := generic["replicas"]; n != nil && fmt.Sprint(n) != "1" {
		r.warn("%s.replicas: is %v and does nothing: the object is created once, and its own fields give the number of its pods", where, n)
	}
	it := item{where: where + ".generictemplate", object: object}
	for _, word := range strings.Split(text(generic, "completionstatus"), ",") {
		if word = strings.TrimSpace(word); word != "" {
			it.done = append(it.done, word)
		}
	}
	if err := checkDone(where+".completionstatus", it.done); err != nil {
		return err
	}
	entries, isList := generic["custompodresources"].([]any)
	if !isList && generic["custompodresources"] != nil {
		return refuse(where+".custompodresources", "is "+typeOf(generic["custompodresources"]), "want a list of objects with replicas, requests and limits")
	}
	for i, entry := range entries {
		d, err := r.declaration(fmt.Sprintf("%s.custompodresources[%d]", where, i), entry)
		if err != nil {
			return err
		}
		it.declared = append(it.declared, d)
	}
	return r.add(it)
}

// declaration reads an entry of custompodresources. As in MCAD a limit counts
// where the request is missing or zero.
func (r *reader) declaration(where string, value any) (declaration, error) {
	entry, isMap := value.(map[string]any)
	if !isMap {
		return declaration{}, refuse(where, "is no object", "want replicas, requests and limits")
	}
	r.idle(where, entry, "replicas", "requests", "limits")
	replicas, err := r.number(entry, where, "replicas", 0, 10_000)
	if err != nil {
		return declaration{}, err
	}
	requests, err := amounts(where+".requests", entry["requests"])
	if err != nil {
		return declaration{}, err
	}
	limits, err := amounts(where+".limits", entry["limits"])
	if err != nil {
		return declaration{}, err
	}
	each := resource.List{}
	for _, name := range requests.Plus(limits).Names() {
		if each[name] = requests[name]; each[name] == 0 {
			each[name] = limits[name]
		}
		if each[name] == 0 {
			delete(each, name)
		}
	}
	return declaration{int(replicas), each}, nil
}

func amounts(where string, value any) (resource.List, error) {
	list, err := ray.ReadAmounts(where, value)
	if err != nil {
		return nil, err
	}
	read, err := kube.Amounts(list)
	if err != nil {
		return nil, refuse(where, err.Error(), "want what a node can have")
	}
	return read, nil
}

// number reads a whole number; 0 when it is missing.
func (r *reader) number(object map[string]any, where, field string, least, most int64) (int64, error) {
	value, given := object[field]
	if !given || value == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	if err != nil || n < least || n > most {
		return 0, refuse(where+"."+field, "is "+fault.Quote(fmt.Sprint(value)), fmt.Sprintf("want a whole number from %d to %d", least, most))
	}
	return n, nil
}

// idle warns of every field that is set and not among those that act.
func (r *reader) idle(where string, object map[string]any, acting ...string) {
	var fields []string
	for field, value := range object {
		if !slices.Contains(acting, field) && !empty(value) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	for _, field := range fields {
		r.warn("%s.%s: does nothing", where, fault.Clip(field))
	}
}

// empty reports whether leaving the value out means the same.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, inner := range v {
			if !empty(inner) {
				return false
			}
		}
		return true
	}
	n, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	return err == nil && n == 0
}
