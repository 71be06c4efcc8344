package objectpolicy

import (
	"maps"
	"slices"
)

func text(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}

func sorted(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// allows reports whether a list has the name, or all.
func allows(list []string, name string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, name)
}
