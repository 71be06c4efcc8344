package kubecontroller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/services/intake/internal/budget"
)

// bounded reads an object within the budget. An object that takes too long is refused;
// err means that the object was not read. The reader gets a copy, because it may still
// run after bounded has returned.
func bounded[T any](ctx context.Context, b *budget.Budget, object *unstructured.Unstructured, read func(*unstructured.Unstructured) (T, error)) (got T, refused, err error) {
	copied := object.DeepCopy()
	type answer struct {
		result  T
		refused error
	}
	a, err := budget.Do(ctx, b, sizeOf(copied.Object), nil, func() answer {
		result, refused := read(copied)
		return answer{result, refused}
	})
	switch {
	case errors.Is(err, budget.ErrSpent):
		return got, err, nil
	case err != nil:
		return got, nil, err
	}
	return a.result, a.refused, nil
}

// valueSize is the size of a value's punctuation in JSON.
const valueSize = 3

// sizeOf estimates the size of a value in JSON, in bytes.
func sizeOf(value any) int {
	size := valueSize
	switch v := value.(type) {
	case string:
		size += len(v)
	case map[string]any:
		for key, item := range v {
			size += len(key) + valueSize + sizeOf(item)
		}
	case []any:
		for _, item := range v {
			size += sizeOf(item)
		}
	}
	return size
}
