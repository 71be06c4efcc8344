package bounds_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/bounds"
)

func TestEachBoundIsHeld(t *testing.T) {
	t.Parallel()
	b := bounds.JSON{Bytes: 100, Depth: 3, Values: 10, Storable: true}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                  {``, ""},
		"as deep as may be":        {`[[{"a": 1}]]`, ""},
		"too deep":                 {`[[[[1]]]]`, "nested more than 3 deep"},
		"as many values as may be": {`[1,2,3,4,5,6,7,8,9]`, ""},
		"too many values":          {`[1,2,3,4,5,6,7,8,9,10]`, "more than 10 values"},
		"too many empty objects":   {`[{},{},{},{},{}]`, "more than 10 values"},
		"as long as may be":        {`"` + strings.Repeat("x", 98) + `"`, ""},
		"too long":                 {`"` + strings.Repeat("x", 99) + `"`, "has 101 bytes; want at most 100"},
		"brackets in a text":       {`"[[[[,,,,,,,,,,,,"`, ""},
		"an escaped quote":         {`"\"[[[[,,,,,,,,,,,,"`, ""},
		"an escaped backslash":     {`"\\",[[[[1]]]]`, "nested more than 3 deep"},
		"NUL":                      {`{"a": "b\u0000"}`, "U+0000 in the text at byte 6"},
		"half of a pair":           {`"\ud83d"`, "half of a surrogate pair in the text at byte 0"},
		"the second half alone":    {`"\ude00"`, "half of a surrogate pair"},
		"two first halves":         {`"\ud83d\ud83d\ude00"`, "half of a surrogate pair"},
		"a pair":                   {`["\ud83d\ude00"]`, ""},
		"half of a pair at an end": {`"\ud83d\u00"`, "half of a surrogate pair"},
		"no UTF-8":                 {"\"\xff\"", "no UTF-8"},
		"an escaped escape of NUL": {`{"a": "b\\u0000"}`, ""},
		"a text without an end":    {`["a`, ""},
		"closed more than opened":  {`]]]]]]1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := b.Check([]byte(c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v; want %q", c.text, err, c.want)
			}
			if err := (bounds.JSON{}).Check([]byte(c.text)); err != nil {
				t.Errorf("%s: %v without bounds", c.text, err)
			}
		})
	}
}

// FuzzCheck: JSON within the bounds has neither more values nor more depth when it is decoded.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"\u0000"}]}`, `[[],[],{}]`, `"\\\""`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 8
		var value any
		err := bounds.JSON{Depth: most, Values: most, Storable: true}.Check(text)
		if err != nil || json.Unmarshal(text, &value) != nil {
			return
		}
		values, depth, hasNUL := measure(value)
		if values > most || depth > most || hasNUL {
			t.Fatalf("%q has %d values, %d deep, and U+0000: %t", text, values, depth, hasNUL)
		}
	})
}

// measure counts what is in a decoded value. Of several keys that are equal there is one.
func measure(value any) (values, depth int, hasNUL bool) {
	inner := func(v any) {
		more, deep, bad := measure(v)
		values, depth, hasNUL = values+more, max(depth, deep), hasNUL || bad
	}
	switch v := value.(type) {
	case string:
		return 1, 0, strings.ContainsRune(v, 0)
	case []any:
		for _, item := range v {
			inner(item)
		}
		return values + 1, depth + 1, hasNUL
	case map[string]any:
		for key, item := range v {
			inner(item)
			hasNUL = hasNUL || strings.ContainsRune(key, 0)
		}
		return values + 1, depth + 1, hasNUL
	}
	return 1, 0, false
}
