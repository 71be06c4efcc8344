package strictyaml_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

type base struct {
	Kind string `json:"kind"`
}

type item struct {
	Name   string `json:"name"`
	Weight weight `json:"weight,omitempty"`
}

// weight reads itself and names a place below its own.
type weight int

func (w *weight) UnmarshalJSON(data []byte) error {
	var object map[string]int
	if err := json.Unmarshal(data, &object); err != nil || object["kilos"] == 0 {
		return fault.At("kilos", "is missing")
	}
	*w = weight(object["kilos"])
	return nil
}

type file struct {
	base
	Items  []item            `json:"items"`
	Labels map[string]string `json:"labels"`
	Count  *int              `json:"count"`
	Share  float64           `json:"share"`
	On     bool              `json:"on"`
	Since  time.Time         `json:"since"`
	Raw    json.RawMessage   `json:"raw"`
	hidden *int
}

func TestWhatIsRight(t *testing.T) {
	t.Parallel()
	node, err := strictyaml.Document([]byte(`---
# a comment
kind: "1"
defaults: &defaults {name: a}
items:
- <<: *defaults
  weight: {kilos: 3}
- {name: 2026-11-21}
labels: {"a/b": on, c: ~}
count: 0x10
share: 2
on: true
since: 2026-01-01T08:00:00Z
raw: {a: [1, 2.5, x, null]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Defaults item `json:"defaults"`
		file
	}
	if err := strictyaml.Decode(node, "", &got); err != nil {
		t.Fatal(err)
	}
	count := 16
	want := file{
		base: base{"1"}, Items: []item{{"a", 3}, {"2026-11-21", 0}}, Labels: map[string]string{"a/b": "on", "c": ""}, Count: &count, Share: 2,
		On: true, Since: time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC), Raw: json.RawMessage(`{"a":[1,2.5,"x",null]}`),
	}
	if diff := cmp.Diff(want, got.file, cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if got.hidden != nil {
		t.Error("a field without a name is set")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing":          {"# only this\n", "the file is empty"},
		"another document": {"kind: a\n---\nkind: b\n", "line 3: another document begins; want one in a file"},
		"a text":           {"hello", `line 1: "hello": want an object with kind, items, labels, count, share, on, since, raw`},
		"a tab":            {"kind: a\nitems:\n\t- name: b\n", "line 3: a tab indents the line; want spaces, YAML allows nothing else"},
		"not closed":       {"kind: [a\n", "line 1: did not find expected ',' or ']'"},
		"a key twice":      {"kind: a\non: true\nkind: b\n", `line 3: mapping key "kind" already defined at line 1`},
		"unknown field":    {"items:\n- name: a\n  nmae: b\n", "line 3: items[0].nmae: there is no such field; want one of name, weight"},
		"number as text":   {"labels:\n  a: 1\n", `line 2: labels.a: 1: want a text, such as "1" with the quotes`},
		"text as number":   {"count: two\n", `line 1: count: "two": want a whole number`},
		"fraction":         {"count: 1.5\n", `line 1: count: 1.5: want a whole number`},
		"too much":         {"count: 99999999999999999999\n", `line 1: count: 99999999999999999999: want a whole number`},
		"no number":        {"share: .nan\n", `line 1: share: .nan: want a number`},
		"yes":              {"on: yes\n", `line 1: on: "yes": want true or false`},
		"object for list":  {"items: {name: a}\n", `line 1: items: an object: want a list`},
		"text for object":  {"items: [a]\n", `line 1: items[0]: "a": want an object with name, weight`},
		"list for text":    {"kind: [a]\n", `line 1: kind: a list: want a text`},
		"text for map":     {"labels: a\n", `line 1: labels: "a": want an object`},
		"below itself":     {"items:\n- name: a\n  weight: {stones: 1}\n", `line 3: items[0].weight.kilos: is missing`},
		"several":          {"colour: red\ncount: two\nlabels: {\"a.b/c\": [1]}\n", "line 1: colour: there is no such field; want one of kind, items, labels, count, share, on, since, raw\n" + `line 2: count: "two": want a whole number` + "\n" + `line 3: labels["a.b/c"]: a list: want a text`},
		"alias of itself":  {"labels: &a {b: *a}\n", "anchor 'a' value contains itself"},
		"too many aliases": {"a: &a [x,x,x,x,x,x,x,x,x]\n" + bomb(), "document contains excessive aliasing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var into file
			err := read([]byte(c.text), &into)
			if err == nil || err.Error() != c.want {
				t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

// bomb is aliases of aliases.
func bomb() string {
	var text strings.Builder
	for c := 'b'; c < 'l'; c++ {
		text.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n")
	}
	return text.String()
}

func read(content []byte, into *file) error {
	node, err := strictyaml.Document(content)
	if err != nil {
		return err
	}
	return strictyaml.Decode(node, "", into)
}

func TestLines(t *testing.T) {
	t.Parallel()
	node, err := strictyaml.Document([]byte("a:\n  b:\n  - c\n  - {d: 1,\n     \"e/f\": 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"": 1, "a": 1, "a.b": 2, "a.b[0]": 3, "a.b[1]": 4, "a.b[1].d": 4, `a.b[1]["e/f"]`: 5, "a.b[9]": 2, "a.x.y": 1, "x": 1, "a.b[1].d.e": 4, "a.b.c": 2,
	} {
		t.Run(path, func(t *testing.T) {
			if got := strictyaml.Line(node, path); got != want {
				t.Errorf("%q is in line %d, want %d", path, got, want)
			}
		})
	}
}

// FuzzDecode: whatever is in a file, it is read or refused by faults, each with its
// line where there is one.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("kind: a\nitems: [{name: b, weight: {kilos: 1}}]\nlabels: {a: b}\n"))
	f.Add([]byte("a: &a {kind: x}\n<<: [*a, *a]\nraw: *a\n"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var into file
		err := read(content, &into)
		var faults fault.List
		if err != nil && (!errors.As(err, &faults) || len(faults) == 0) {
			t.Fatalf("the error has no faults: %v", err)
		}
		for _, f := range faults {
			if f.Path != "" && f.Line < 1 {
				t.Fatalf("a fault without a line: %v", f)
			}
		}
		documents, _ := strictyaml.Documents(content)
		for _, d := range documents {
			strictyaml.Line(d, `a[0]["b"].c`)
		}
	})
}
