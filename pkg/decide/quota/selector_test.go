package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
)

// The rules are those of Kubernetes ("Labels and Selectors"): all requirements must hold, and
// NotIn and DoesNotExist hold of an object without the label.
func TestASelectorMatchesAsInKubernetes(t *testing.T) {
	t.Parallel()
	expression := func(operator string, values ...string) *quota.LabelSelector {
		return &quota.LabelSelector{MatchExpressions: []quota.LabelExpression{{Key: "team", Operator: operator, Values: values}}}
	}
	a, b, none := map[string]string{"team": "a", "tier": "gold"}, map[string]string{"team": "b"}, map[string]string(nil)
	for name, c := range map[string]struct {
		selector *quota.LabelSelector
		labels   map[string]string
		unmet    string // empty: it matches
	}{
		"no requirement":               {&quota.LabelSelector{}, none, ""},
		"a label":                      {&quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, a, ""},
		"another value":                {&quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, b, "it has team=b, and the selector wants team In (a)"},
		"no label":                     {&quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, none, `it has no label "team", and the selector wants team In (a)`},
		"one of two labels":            {&quota.LabelSelector{MatchLabels: map[string]string{"team": "a", "tier": "free"}}, a, "it has tier=gold, and the selector wants tier In (free)"},
		"In":                           {expression("In", "b", "a"), a, ""},
		"In, another":                  {expression("In", "v", "w", "x", "y", "z"), a, "it has team=a, and the selector wants team In (v, w, x and 2 more)"},
		"In, without the label":        {expression("In", "a"), none, `it has no label "team", and the selector wants team In (a)`},
		"NotIn":                        {expression("NotIn", "b"), a, ""},
		"NotIn, one of them":           {expression("NotIn", "b"), b, "it has team=b, and the selector wants team NotIn (b)"},
		"NotIn, without the label":     {expression("NotIn", "b"), none, ""},
		"Exists":                       {expression("Exists"), b, ""},
		"Exists, without the label":    {expression("Exists"), none, `it has no label "team", and the selector wants team Exists`},
		"DoesNotExist":                 {expression("DoesNotExist"), none, ""},
		"DoesNotExist, with the label": {expression("DoesNotExist"), a, "it has team=a, and the selector wants team DoesNotExist"},
		"both kinds": {
			&quota.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: []quota.LabelExpression{{Key: "team", Operator: "In", Values: []string{"b"}}}},
			a, "it has team=a, and the selector wants team In (b)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.selector.Unmet(c.labels); got != c.unmet {
				t.Errorf("unmet is %q, want %q", got, c.unmet)
			}
			if got := c.selector.Matches(c.labels); got != (c.unmet == "") {
				t.Errorf("it matches: %t", got)
			}
		})
	}
}

func TestWrongSelectorsAreRefused(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, c := range map[string]struct {
		selector quota.LabelSelector
		want     string
	}{
		"unknown operator": {quota.LabelSelector{MatchExpressions: []quota.LabelExpression{{Key: "k", Operator: "Gt", Values: []string{"1"}}}}, `namespaceSelector.matchExpressions[0].operator: "Gt": want one of In, NotIn, Exists, DoesNotExist`},
		"In without":       {quota.LabelSelector{MatchExpressions: []quota.LabelExpression{{Key: "k", Operator: "In"}}}, "has 0 values; operator In wants 1 to 1000"},
		"Exists with":      {quota.LabelSelector{MatchExpressions: []quota.LabelExpression{{Key: "k", Operator: "Exists", Values: []string{"v"}}}}, "has 1 values; operator Exists wants none"},
		"no key":           {quota.LabelSelector{MatchExpressions: []quota.LabelExpression{{Operator: "Exists"}}}, "has no key"},
		"too many":         {quota.LabelSelector{MatchLabels: many}, "has 101 requirements; want at most 100"},
		"too long":         {quota.LabelSelector{MatchLabels: map[string]string{"k": strings.Repeat("x", 400)}}, "has 400 bytes; want at most 317"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "q", NamespaceSelector: &c.selector}}}
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
