package workload_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// The rules are those of Kubernetes' documentation of labels and selectors, equality-based.
func TestClusterSelectorMatches(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"gpu": "h100", "example.com/zone": "eu", "empty": ""}
	for name, c := range map[string]struct {
		selector string
		want     bool
	}{
		"nothing is asked":                     {"", true},
		"equal":                                {"gpu=h100", true},
		"equal, written twice":                 {"gpu == h100", true},
		"another value":                        {"gpu=a100", false},
		"equal to nothing, and there":          {"empty=", true},
		"equal to nothing, and not there":      {"other=", false},
		"not equal":                            {"gpu!=a100", true},
		"not equal, and it is":                 {"gpu!=h100", false},
		"not equal, and there is no label":     {"other!=x", true},
		"there":                                {"example.com/zone", true},
		"there, and it is not":                 {"other", false},
		"not there":                            {"!other", true},
		"not there, and it is":                 {"!gpu", false},
		"all hold":                             {"gpu=h100,example.com/zone=eu,!other", true},
		"one does not hold":                    {"gpu=h100,example.com/zone=us", false},
		"the name":                             {"muster.dev/cluster=east", true},
		"another name":                         {"muster.dev/cluster!=east", false},
		"a label does not pass for the name":   {"muster.dev/cluster=h100", false},
		"spaces":                               {" gpu = h100 , ! other ", true},
		"the same twice, and it does not hold": {"gpu=a100,gpu=a100", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			selector, err := workload.ParseClusterSelector(c.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches("east", labels); got != c.want {
				t.Errorf("%q matches: %v, want %v", selector, got, c.want)
			}
			again, err := workload.ParseClusterSelector(string(selector))
			if err != nil || again != selector {
				t.Errorf("%q reads as %q, %v; want the same", selector, again, err)
			}
		})
	}
}

func TestClusterSelectorRefuses(t *testing.T) {
	t.Parallel()
	for name, selector := range map[string]string{
		"no key": "=h100", "a set": "gpu in (h100)", "an empty part": "gpu=h100,", "a bad value": "gpu=h/100", "two values": "gpu=a=b",
		"too long": strings.Repeat("a,", 300), "a bad key": "-gpu=h100",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := workload.ParseClusterSelector(selector); err == nil {
				t.Errorf("%q reads as %q, want a refusal", selector, got)
			}
		})
	}
}
