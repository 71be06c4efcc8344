package ray

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/resource"
)

// checkQuantities refuses quantities that do not parse, are negative or cannot
// be counted, wherever they are. It runs before the types are decoded, whose
// errors name neither field nor value.
func checkQuantities(tree map[string]any) error {
	var path trail
	return walkQuantities(tree, &path)
}

func walkQuantities(node any, path *trail) error {
	switch n := node.(type) {
	case map[string]any:
		amounts := len(*path) > 0 && holdsAmounts(*path)
		for _, key := range slices.Sorted(maps.Keys(n)) {
			path.enter(key)
			var err error
			switch {
			case amounts:
				err = checkQuantity(path.String(), resource.Name(key), n[key])
			case isAmount(*path):
				err = checkQuantity(path.String(), resource.Memory, n[key])
			default:
				err = walkQuantities(n[key], path)
			}
			if err != nil {
				return err
			}
			path.leave()
		}
	case []any:
		for i, item := range n {
			path.enterItem(i)
			if err := walkQuantities(item, path); err != nil {
				return err
			}
			path.leave()
		}
	}
	return nil
}

// holdsAmounts reports whether the object at the path is a map of resources to
// quantities.
func holdsAmounts(path trail) bool {
	switch path.last() {
	case "requests", "limits":
		return path.under("resources")
	case "overhead":
		return path.under("spec")
	}
	return false
}

// isAmount reports whether the field at the path is a quantity by itself.
func isAmount(path trail) bool {
	return path.last() == "sizeLimit" && path.under("emptyDir") || path.last() == "divisor" && path.under("resourceFieldRef")
}

// plausible bounds a quantity before it is parsed: to write out the digits of
// 1e1000000000 would take the machine down.
var plausible = regexp.MustCompile(`^[^eE]{1,64}([eE][+-]?[0-9]{0,2})?i?$`)

const quantityRemedy = `want a Kubernetes quantity such as "500m", "4" or "16Gi"`

func checkQuantity(where string, name resource.Name, value any) error {
	var text string
	switch v := value.(type) {
	case nil:
		return nil // as if it were not there
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		return refuse(where, "is "+describe(value), quantityRemedy)
	}
	if !plausible.MatchString(text) {
		return refuse(where, quote(text)+" is no quantity", quantityRemedy)
	}
	quantity, err := apiresource.ParseQuantity(text)
	if err != nil {
		return refuse(where, quote(text)+" is no quantity", quantityRemedy)
	}
	if quantity.Sign() < 0 {
		return refuse(where, quote(text)+" is negative", "want zero or more")
	}
	if rounded := quantity.DeepCopy(); resource.Whole(name) && !rounded.RoundUp(0) {
		return refuse(where, quote(text)+" is not a whole number", `want whole ones, such as "1"`)
	}
	if _, err := kube.Amounts(corev1.ResourceList{corev1.ResourceName(name): quantity}); err != nil {
		return refuse(where, quote(text)+" is more than can be counted", "want an amount that a node can have")
	}
	return nil
}
