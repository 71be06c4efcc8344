package appwrapper

import (
	"fmt"

	"muster.dev/muster/pkg/spec/fault"
)

// refusal is what is wrong, where, and what would be right.
type refusal struct{ where, what, remedy string }

func (r *refusal) Error() string { return fault.Printable(r.where + ": " + r.what + "; " + r.remedy) }

func (r *refusal) Unwrap() error { return ErrInvalid }

func refuse(where, what, remedy string) error { return &refusal{where, what, remedy} }

// object returns a field that is an object, and refuses any other value.
func object(where string, value any, want string) (map[string]any, error) {
	switch value := value.(type) {
	case map[string]any:
		return value, nil
	case nil:
		return nil, refuse(where, "is missing", "want "+want)
	default:
		return nil, refuse(where, "is "+typeOf(value), "want an object: "+want)
	}
}

// wrappedObjects returns a list of what an AppWrapper wraps, and refuses any other value and
// one that is empty.
func wrappedObjects(where string, value any, entry string) ([]any, error) {
	list, isList := value.([]any)
	switch {
	case value == nil:
		return nil, refuse(where, "is missing", "want a list of at least one wrapped object, as - "+entry+": OBJECT")
	case !isList:
		return nil, refuse(where, "is "+typeOf(value), "want a list, each entry as - "+entry+": OBJECT")
	case len(list) == 0:
		return nil, refuse(where, "is empty", "want at least one wrapped object")
	}
	return list, nil
}

// typeOf names the type of a value in a manifest.
func typeOf(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fault.Quote(value)
	default:
		return fmt.Sprint(value)
	}
}

func text(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}
