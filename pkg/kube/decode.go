package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	sigsjson "sigs.k8s.io/json"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// Decode fills a Go type that has quantities from a JSON tree, as the API server does.
// No other code may do so: Decode checks each quantity before parsing it, because the
// parser may never return. The error for one is a QuantityError whose path begins with
// where.
//
// It reads a tree and not bytes: of a duplicate key in bytes it would check only one
// value.
func Decode(where string, tree, into any) error {
	encoded, err := checked(where, tree, into)
	if err != nil {
		return err
	}
	return sigsjson.UnmarshalCaseSensitivePreserveInts(encoded, into)
}

// DecodeStrictly is Decode that also returns fields unknown to the type.
func DecodeStrictly(where string, tree, into any) (unknown []error, err error) {
	encoded, err := checked(where, tree, into)
	if err != nil {
		return nil, err
	}
	return sigsjson.UnmarshalStrict(encoded, into, sigsjson.DisallowUnknownFields)
}

// checked returns the tree as JSON after checking each quantity of the type.
func checked(where string, tree, into any) ([]byte, error) {
	if err := checkQuantities(where, tree, into); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// checkQuantities returns a QuantityError for the first value of a JSON tree that would
// decode into a quantity of the type of as and is invalid. Its path begins with where.
func checkQuantities(where string, tree, as any) error {
	var steps []string
	if where != "" {
		steps = append(steps, where)
	}
	w := quantityWalk{steps: steps}
	return w.value(reflect.TypeOf(as), tree)
}

// quantityWalk follows a tree along a Go type.
type quantityWalk struct{ steps []string }

// path returns the path as kubectl writes it: spec.workerGroupSpecs[0].replicas.
func (w *quantityWalk) path() string {
	var path strings.Builder
	for _, step := range w.steps {
		if path.Len() > 0 && !strings.HasPrefix(step, "[") {
			path.WriteByte('.')
		}
		path.WriteString(step)
	}
	return path.String()
}

func (w *quantityWalk) within(step string, t reflect.Type, tree any) error {
	w.steps = append(w.steps, step)
	defer func() { w.steps = w.steps[:len(w.steps)-1] }()
	return w.value(t, tree)
}

var quantityType = reflect.TypeFor[apiresource.Quantity]()

// value checks the parts of the tree that decode into the type.
func (w *quantityWalk) value(t reflect.Type, tree any) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == quantityType {
		return checkQuantity(w.path(), resource.Memory, tree)
	}
	if !hasQuantity(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		object, _ := tree.(map[string]any)
		for _, field := range fieldsOf(t) {
			if value, there := object[field.name]; there {
				if err := w.within(fault.Clip(field.name), field.of, value); err != nil {
					return err
				}
			}
		}
	case reflect.Map:
		object, _ := tree.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if t.Elem() == quantityType {
				if err := checkQuantity(w.path()+"."+fault.Clip(key), resource.Name(key), object[key]); err != nil {
					return err
				}
			} else if err := w.within(fault.Clip(key), t.Elem(), object[key]); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		list, _ := tree.([]any)
		for i, item := range list {
			if err := w.within("["+strconv.Itoa(i)+"]", t.Elem(), item); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%s: a quantity in a %s is not supported", w.path(), t)
	}
	return nil
}

// quantityField is a field of a struct that leads to a quantity.
type quantityField struct {
	name string // in JSON
	of   reflect.Type
}

// quantityFields caches fieldsOf by type; it holds no input.
var quantityFields sync.Map

// fieldsOf returns the fields of a struct that lead to quantities, including those of
// inlined structs.
func fieldsOf(t reflect.Type) []quantityField {
	if known, ok := quantityFields.Load(t); ok {
		return known.([]quantityField)
	}
	var fields []quantityField
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
		case field.Anonymous && name == "":
			inner := field.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && inner != quantityType {
				fields = append(fields, fieldsOf(inner)...)
			}
		default:
			if name == "" {
				name = field.Name
			}
			if hasQuantity(field.Type) {
				fields = append(fields, quantityField{name, field.Type})
			}
		}
	}
	quantityFields.Store(t, fields)
	return fields
}

// quantityTypes caches hasQuantity by type.
var quantityTypes sync.Map

// hasQuantity reports whether a value of the type may hold a quantity.
func hasQuantity(t reflect.Type) bool {
	if known, ok := quantityTypes.Load(t); ok {
		return known.(bool)
	}
	has := leadsToQuantity(t, map[reflect.Type]bool{})
	quantityTypes.Store(t, has)
	return has
}

func leadsToQuantity(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == quantityType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return leadsToQuantity(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if leadsToQuantity(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
