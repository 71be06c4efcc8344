package watch

import "fmt"

// store passes the objects of a reflector on, without keeping copies.
type store[T any] struct {
	set     func(T)
	remove  func(T)
	replace func([]T)
	listed  func() // called after each full list
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(object any) error { return with(object, s.set) }

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(object any) error { return with(object, s.set) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(object any) error { return with(object, s.remove) }

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(objects []any, _ string) error {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		if err := with(object, func(o T) { all = append(all, o) }); err != nil {
			return err
		}
	}
	s.replace(all)
	s.listed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store[T]) Resync() error { return nil }

func with[T any](object any, do func(T)) error {
	typed, ok := object.(T)
	if !ok {
		return fmt.Errorf("got a %T, want a %T", object, *new(T))
	}
	do(typed)
	return nil
}
