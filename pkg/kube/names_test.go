package kube

import (
	"strings"
	"testing"
)

func TestBadNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 6000)
	for _, c := range []struct {
		name  string
		check func(string) string
		takes []string
		not   []string
	}{
		{"kind", BadKind, []string{"Pod", "RayCluster", "PyTorchJob"}, []string{"", "pod", "P" + long, "Po d", "P\x1b[2J", "P/x", "Pod\n"}},
		{"version", BadAPIVersion, []string{"v1", "apps/v1", "batch.volcano.sh/v1alpha1"}, []string{"", "/v1", "apps/", "a/b/c", "v1\n", long, "a b/v1"}},
		{"name", func(s string) string { return BadName("", s) }, []string{"a", "a.b-c", "9"}, []string{"", "../../x", "a/b", "A", "a\x00", "a\n", "\x1b]0;x\a", long}},
		{"role", func(s string) string { return BadName("rbac.authorization.k8s.io", s) }, []string{"system:node", "a"}, []string{"..", "a/b", "a%b", "a\x1b[31m", long}},
		{"namespace", BadNamespace, []string{"team-a"}, []string{"", "a.b", "A", long}},
		{"text", BadText, []string{"", "any text: ünïcode"}, []string{"a\x00", "a\nb", "\x1b[2J", "\u009b31m", "\u202e", "\xff", "a\tb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, good := range c.takes {
				if why := c.check(good); why != "" {
					t.Errorf("%q: %s", good, why)
				}
			}
			for _, bad := range c.not {
				if c.check(bad) == "" {
					t.Errorf("%.40q is taken", bad)
				}
			}
		})
	}
}

func TestBadLabels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metadata map[string]any
		where    string
	}{
		"none":             {map[string]any{}, ""},
		"sound":            {map[string]any{"labels": map[string]any{"a.b/c": "d", "e": ""}, "annotations": map[string]any{"a": "any\ntext"}}, ""},
		"no object":        {map[string]any{"labels": []any{}}, "labels"},
		"a long value":     {map[string]any{"labels": map[string]any{"a": strings.Repeat("b", 64)}}, "labels[a]"},
		"an escape":        {map[string]any{"labels": map[string]any{"a": "\x1b[2J"}}, "labels[a]"},
		"a key":            {map[string]any{"annotations": map[string]any{"a\n": ""}}, `annotations["a\n"]`},
		"a number":         {map[string]any{"annotations": map[string]any{"a": 1}}, "annotations[a]"},
		"many annotations": {map[string]any{"annotations": map[string]any{"a": strings.Repeat("b", 300<<10)}}, "annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if where, what, why := BadLabels(c.metadata); where != c.where || (why == "") != (where == "") || (what == "") != (where == "") {
				t.Errorf("at %q: %q; %q; want at %q", where, what, why, c.where)
			}
		})
	}
}
