package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

func TestAmountsAreParsed(t *testing.T) {
	t.Parallel()
	got, err := query.ParseAmounts("cpu=1500m, memory=2Gi,nvidia.com/gpu=8")
	if diff := cmp.Diff(resource.List{"cpu": 1500, "memory": 2 << 30, "nvidia.com/gpu": 8}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "cpu", "=1", "cpu=x", "cpu=1,,"} {
		if got, err := query.ParseAmounts(bad); err == nil {
			t.Errorf("%q is %v, want an error", bad, got)
		}
	}
}

func TestShapesAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape query.NodeShape
		good  bool
	}{
		"a node":      {query.NodeShape{Allocatable: resource.List{"cpu": 1}, Labels: map[string]string{"pool": "a100"}}, true},
		"nothing":     {query.NodeShape{}, false},
		"less":        {query.NodeShape{Allocatable: resource.List{"cpu": -1}}, false},
		"too much":    {query.NodeShape{Allocatable: resource.List{"cpu": 1 << 60}}, false},
		"a bad label": {query.NodeShape{Allocatable: resource.List{"cpu": 1}, Labels: map[string]string{"": "x"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.shape.Check(); (err == nil) != c.good {
				t.Errorf("error %v, want one: %t", err, !c.good)
			}
		})
	}
}
