package admission

import (
	"fmt"
	"reflect"

	"muster.dev/muster/pkg/decide/index"
	"muster.dev/muster/pkg/spec/workload"
)

// pairing walks two values side by side. They have the same shape when everything that
// is reached is equal, where a pointer is equal to its counterpart in the other value.
type pairing struct {
	state *State
	of    map[reflect.Value]reflect.Value // counterpart of a pointer
	later []func() string                 // maps by pointers, whose counterparts are known at the end
}

// differs returns what differs between two states, empty for nothing. Functions are not
// compared.
func (s *State) differs(other *State) string {
	p := &pairing{state: s, of: map[reflect.Value]reflect.Value{}}
	path := p.walk("state", reflect.ValueOf(s), reflect.ValueOf(other))
	for w := range s.waiting.All() {
		if path == "" {
			path = p.walk("state.waiting", reflect.ValueOf(w), reflect.ValueOf(other.waiting.Get(w.Workload.ID)))
		}
	}
	for i := 0; path == "" && i < len(p.later); i++ { // the list grows meanwhile
		path = p.later[i]()
	}
	return path
}

func (p *pairing) walk(path string, a, b reflect.Value) string {
	switch a.Kind() {
	case reflect.Pointer:
		return p.walkPointers(path, a, b)
	case reflect.Interface:
		if a.IsNil() || b.IsNil() || a.Elem().Type() != b.Elem().Type() {
			return differ(path, !a.IsNil() || !b.IsNil())
		}
		return p.walk(path, a.Elem(), b.Elem())
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[index.Index[workload.ID, Waiting]]() {
			return "" // it has a hash of its own
		}
		for i := range a.NumField() {
			if found := p.walk(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); found != "" {
				return found
			}
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return differ(path, true)
		}
		for i := range a.Len() {
			if found := p.walk(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); found != "" {
				return found
			}
		}
	case reflect.Map:
		if kind := a.Type().Key().Kind(); kind == reflect.Pointer || kind == reflect.Struct {
			p.later = append(p.later, func() string { return p.walkMap(path, a, b) })
			return ""
		}
		return p.walkMap(path, a, b)
	case reflect.Func:
	default:
		return differ(path, !a.Equal(b))
	}
	return ""
}

func differ(path string, is bool) string {
	if is {
		return path + " differs"
	}
	return ""
}

func (p *pairing) walkPointers(path string, a, b reflect.Value) string {
	if a.IsNil() || b.IsNil() || a.Pointer() == b.Pointer() {
		return differ(path, a.Pointer() != b.Pointer())
	}
	key := reflect.NewAt(a.Type().Elem(), a.UnsafePointer())
	if known, ok := p.of[key]; ok {
		return differ(path, known.Pointer() != b.Pointer())
	}
	p.of[key] = b
	if w, ok := key.Interface().(*Waiting); ok && !p.state.waiting.Has(w) {
		return "" // it has left: only which one it is counts
	}
	return p.walk(path, a.Elem(), b.Elem())
}

func (p *pairing) walkMap(path string, a, b reflect.Value) string {
	if a.Len() != b.Len() {
		return differ(path, true)
	}
	for entries := a.MapRange(); entries.Next(); {
		value := b.MapIndex(p.counterpart(entries.Key(), b))
		if !value.IsValid() {
			return differ(fmt.Sprintf("%s[%v]", path, entries.Key()), true)
		}
		if found := p.walk(fmt.Sprintf("%s[%v]", path, entries.Key()), entries.Value(), value); found != "" {
			return found
		}
	}
	return ""
}

// counterpart returns the key of the other map that a key is equal to; itself for none.
func (p *pairing) counterpart(key, other reflect.Value) reflect.Value {
	switch key.Kind() {
	case reflect.Pointer:
		if known, ok := p.of[reflect.NewAt(key.Type().Elem(), key.UnsafePointer())]; ok {
			return known
		}
	case reflect.Struct:
		for _, candidate := range other.MapKeys() {
			if p.walk("", key, candidate) == "" {
				return candidate
			}
		}
	}
	return key
}
