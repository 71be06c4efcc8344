package query

import (
	"fmt"
	"strings"
	"testing"
)

// What a cluster answers is taken only with the digest of its content, and up to a size.
func TestCarriedContentIsChecked(t *testing.T) {
	t.Parallel()
	good := CarriedObject{Text: map[string]string{"a": "b"}, Data: map[string][]byte{"c": {1}}}
	digest, err := good.Sum()
	if err != nil {
		t.Fatal(err)
	}
	good.Digest = digest
	changed, large, many := good, good, good
	many.Data = map[string][]byte{}
	for i := range MostCarriedKeys {
		many.Data[fmt.Sprint(i)] = nil
	}
	changed.Text = map[string]string{"a": "another"}
	large.Text = map[string]string{"a": strings.Repeat("x", MaxCarried)}
	for name, c := range map[string]struct {
		found CarriedFound
		want  string // of the error; empty for none
	}{
		"the object":      {CarriedFound{Object: &good}, ""},
		"a failure":       {CarriedFound{Error: "there is none", Object: &good}, `cluster "main": there is none`},
		"nothing":         {CarriedFound{}, "has no object"},
		"another content": {CarriedFound{Object: &changed}, "another digest"},
		"busy":            {CarriedFound{Busy: true, Error: "8 objects are being read", Object: &good}, `cluster "main": 8 objects are being read`},
		"many keys":       {CarriedFound{Object: &many}, "has 1001 keys; at most 1000 are carried"},
		"too much":        {CarriedFound{Object: &large}, "at most 524288 are carried"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := c.found.checked("main")
			if c.want == "" && (err != nil || object == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the object is %+v, %v; want %q", object, err, c.want)
			}
		})
	}
}
