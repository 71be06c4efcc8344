package door

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/intake/internal/budget"
)

// bounded reads an object within the budget. An object that takes too long is
// refused; err says that nothing is known of it. What is read is a copy, because a
// reader that was given up still runs.
func bounded[T any](ctx context.Context, b *budget.Budget, object *unstructured.Unstructured, read func(*unstructured.Unstructured) (T, error)) (got T, refused, err error) {
	copied := object.DeepCopy()
	type answer struct {
		result  T
		refused error
	}
	a, err := budget.Do(ctx, b, event.MaxSubmission, nil, func() answer {
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
