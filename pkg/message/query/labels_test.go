package query

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]LabelRequirement{
		"team=a":                        {{"team", LabelIn, []string{"a"}}},
		"team==a,stage!=test":           {{"stage", LabelNotIn, []string{"test"}}, {"team", LabelIn, []string{"a"}}},
		"stage in (test, dev),!old,new": {{"new", LabelExists, nil}, {"old", LabelAbsent, nil}, {"stage", LabelIn, []string{"dev", "test"}}},
		"example.org/team notin (a)":    {{"example.org/team", LabelNotIn, []string{"a"}}},
		"team=":                         {{"team", LabelIn, []string{""}}},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			again, err := ParseSelector(SelectorText(got))
			if diff := cmp.Diff(want, again); diff != "" || err != nil {
				t.Errorf("written and read again: %v %s", err, diff)
			}
		})
	}
}

func TestBadSelectors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing":             {"", "has no condition"},
		"no selector":         {"team a", `"team a"`},
		"a comparison":        {"gpus>4", `operator "gt" of label "gpus": want =, !=`},
		"a bad value":         {"team=-", "team"},
		"too long":            {strings.Repeat("a", longestSelector+1), "want 4096 at most"},
		"too many conditions": {"a" + strings.Repeat(",a", mostRequirements), "want 32 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSelector(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	for name, r := range map[string]LabelRequirement{
		"no key": {Operator: LabelExists}, "a long key": {Key: strings.Repeat("k", longestLabelKey+1), Operator: LabelExists},
		"another operator": {Key: "k", Operator: "Like"}, "values of none": {Key: "k", Operator: LabelExists, Values: []string{"v"}},
		"no values": {Key: "k", Operator: LabelIn}, "a long value": {Key: "k", Operator: LabelIn, Values: []string{strings.Repeat("v", longestLabel+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := CheckLabels([]LabelRequirement{r}); err == nil {
				t.Errorf("%+v is taken", r)
			}
		})
	}
}
