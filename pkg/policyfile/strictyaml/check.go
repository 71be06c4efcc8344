package strictyaml

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/spec/fault"
)

// checker holds a document against a type and collects what does not agree.
type checker struct{ faults fault.List }

func (c *checker) fault(n *yaml.Node, path, format string, args ...any) {
	c.faults = append(c.faults, fault.Fault{Line: n.Line, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) check(n *yaml.Node, path string, t reflect.Type) {
	n = target(n)
	if isNull(n) {
		return // as left out
	}
	if reads(t) {
		c.read(n, path, t)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		c.check(n, path, t.Elem())
	case reflect.Struct:
		if c.is(n, path, yaml.MappingNode, "an object with "+strings.Join(names(t), ", ")) {
			c.fields(n, path, t)
		}
	case reflect.Map:
		if c.is(n, path, yaml.MappingNode, "an object") {
			each(n, func(key, v *yaml.Node) { c.check(v, fault.Key(path, key.Value), t.Elem()) })
		}
	case reflect.Slice:
		if c.is(n, path, yaml.SequenceNode, "a list") {
			for i, item := range n.Content {
				c.check(item, fault.Index(path, i), t.Elem())
			}
		}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		c.scalar(n, path, t)
	}
}

// reads reports whether values of the type read themselves.
func reads(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// read has a value read itself; its content is at its place, or below it.
func (c *checker) read(n *yaml.Node, path string, t reflect.Type) {
	encoded, err := json.Marshal(value(n))
	if err == nil {
		err = json.Unmarshal(encoded, reflect.New(t).Interface())
	}
	if err == nil {
		return
	}
	if t == reflect.TypeFor[time.Time]() {
		c.fault(n, path, "%s: want a time, such as 2026-01-31T08:00:00Z", shown(n))
		return
	}
	for _, f := range Locate(n, err) {
		f.Path = fault.Below(path, f.Path)
		c.faults = append(c.faults, f)
	}
}

func (c *checker) is(n *yaml.Node, path string, kind yaml.Kind, want string) bool {
	if n.Kind != kind {
		c.fault(n, path, "%s: want %s", shown(n), want)
	}
	return n.Kind == kind
}

// fields checks the fields of an object.
func (c *checker) fields(n *yaml.Node, path string, t reflect.Type) {
	each(n, func(key, v *yaml.Node) {
		at := fault.Key(path, key.Value)
		if field, known := fieldOf(t, key.Value); known {
			c.check(v, at, field)
		} else {
			c.fault(key, at, "there is no such field; want one of %s", strings.Join(names(t), ", "))
		}
	})
}

func (c *checker) scalar(n *yaml.Node, path string, t reflect.Type) {
	want := map[reflect.Kind]string{reflect.String: "a text", reflect.Bool: "true or false", reflect.Float64: "a number"}[t.Kind()]
	if want == "" {
		want = "a whole number"
	}
	if !c.is(n, path, yaml.ScalarNode, want) {
		return
	}
	encoded, err := json.Marshal(value(n))
	if err == nil {
		err = json.Unmarshal(encoded, reflect.New(t).Interface())
	}
	switch {
	case err == nil:
	case t.Kind() == reflect.String:
		c.fault(n, path, `%s: want a text, such as "%s" with the quotes`, shown(n), n.Value)
	default:
		c.fault(n, path, "%s: want %s", shown(n), want)
	}
}

// eachField calls visit with the fields of an object, those of embedded ones
// included, as JSON names them.
func eachField(t reflect.Type, visit func(name string, of reflect.Type)) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			eachField(field.Type, visit)
		case field.IsExported() && name != "-" && name != "":
			visit(name, field.Type)
		}
	}
}

func names(t reflect.Type) []string {
	var all []string
	eachField(t, func(name string, _ reflect.Type) { all = append(all, name) })
	return all
}

func fieldOf(t reflect.Type, wanted string) (of reflect.Type, known bool) {
	eachField(t, func(name string, field reflect.Type) {
		if !known && name == wanted {
			of, known = field, true
		}
	})
	return of, known
}
