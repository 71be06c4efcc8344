package kube

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// ErrQuantity is wrapped by the errors about invalid quantities.
var ErrQuantity = errors.New("bad quantity")

// QuantityError has the path of an invalid quantity, the fault and the remedy.
type QuantityError struct{ Path, What, Remedy string }

func (e *QuantityError) Error() string { return e.Path + ": " + e.What + "; " + e.Remedy }

func (e *QuantityError) Unwrap() error { return ErrQuantity }

// ParseQuantity is the parser of Kubernetes for untrusted text. It refuses text that
// would take long to parse or to add (resource.Bounded).
func ParseQuantity(text string) (apiresource.Quantity, error) {
	if err := resource.Bounded(text); err != nil {
		return apiresource.Quantity{}, err
	}
	return apiresource.ParseQuantity(text)
}

// MustQuantity is ParseQuantity for constants; it panics on an invalid one.
func MustQuantity(text string) apiresource.Quantity {
	quantity, err := ParseQuantity(text)
	if err != nil {
		panic(fmt.Sprintf("quantity %q: %v", text, err))
	}
	return quantity
}

const quantityRemedy = `want a Kubernetes quantity such as "500m", "4" or "16Gi"`

// checkQuantity returns a QuantityError unless the value of a JSON tree is a valid
// quantity of the resource. Null counts as absent.
func checkQuantity(path string, name resource.Name, value any) error {
	refuse := func(what, remedy string) error { return &QuantityError{path, what, remedy} }
	var text string
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		text = v
	case json.Number:
		text = v.String()
	case int64, float64:
		text = fmt.Sprint(v)
	default:
		return refuse("is "+describe(value), quantityRemedy)
	}
	quantity, err := ParseQuantity(text)
	if err != nil {
		return refuse(fault.Quote(text)+" is no quantity", quantityRemedy)
	}
	if quantity.Sign() < 0 {
		return refuse(fault.Quote(text)+" is negative", "want zero or more")
	}
	if resource.Whole(name) && !whole(quantity) {
		return refuse(fault.Quote(text)+" is not a whole number", `want whole ones, such as "1"`)
	}
	if _, err := Amounts(corev1.ResourceList{corev1.ResourceName(name): quantity}); err != nil {
		return refuse(fault.Quote(text)+" is more than can be counted", "want an amount that a node can have")
	}
	return nil
}

// describe names the kind of a value of a JSON tree.
func describe(value any) string {
	switch value.(type) {
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	}
	return "an object"
}
