package unescaped_test

import (
	"testing"

	"muster.dev/muster/pkg/manifest/unescaped"
)

func TestCharactersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	got, err := unescaped.JSON(map[string]any{"b": "a <b> & \"c\"", "a": 1})
	if want := `{"a":1,"b":"a <b> & \"c\""}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got, err := unescaped.JSON(func() {}); err == nil {
		t.Errorf("a function became %s, want an error", got)
	}
}
