package page

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

// TestTemplates: values are written as the part of the URL in which they stand needs it, and never
// change the host or the path around them.
func TestTemplates(t *testing.T) {
	t.Parallel()
	plain := workload.Record{Workload: workload.Workload{ID: "id-1", Namespace: "team-a", Name: "train"}, Cluster: "east"}
	odd := workload.Record{Workload: workload.Workload{ID: "id-1", Namespace: "a/b?c#d", Name: `x" &y=../z`}, Cluster: "evil.example/"}
	for name, c := range map[string]struct {
		template string
		of       workload.Record
		want     string
	}{
		"none":                      {"", plain, ""},
		"no places":                 {"https://logs.example.org/?a=b", plain, "https://logs.example.org/?a=b"},
		"all places":                {"https://ray.example.org/{cluster}/{namespace}/{name}?id={workload}#{name}", plain, "https://ray.example.org/east/team-a/train?id=id-1#train"},
		"a host":                    {"http://{cluster}.example.org:8265/", plain, "http://east.example.org:8265/"},
		"a host that is none":       {"https://{cluster}.example.org/", odd, ""},
		"a value in a path":         {"https://a.example/{namespace}/x", odd, "https://a.example/a%2Fb%3Fc%23d/x"},
		"a value in a query":        {"https://a.example/?q=%7Bns%3D{name}", odd, "https://a.example/?q=%7Bns%3Dx%22+%26y%3D..%2Fz"},
		"a value in a fragment":     {"https://a.example/?a#{namespace}?", odd, "https://a.example/?a#a%2Fb%3Fc%23d?"},
		"the folder above":          {"https://a.example/logs/{name}/", workload.Record{Workload: workload.Workload{Name: ".."}}, ""},
		"a value that is not known": {"https://a.example/{cluster}/", workload.Record{}, ""},
		"a value that is not asked": {"https://a.example/{name}/", workload.Record{Workload: workload.Workload{Name: "train"}}, "https://a.example/train/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := ParseTemplate(c.template)
			if err != nil {
				t.Fatal(err)
			}
			if got := template.of(&c.of); got != c.want {
				t.Errorf("%q of %s/%s is %q, want %q", c.template, c.of.Namespace, c.of.Name, got, c.want)
			}
		})
	}
}

// TestTemplatesThatAreRefused name what is wrong.
func TestTemplatesThatAreRefused(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"javascript:alert(1)": "begins with https://", "//a.example/": "begins with https://", "HTTPS://a.example/": "begins with https://", "{cluster}://a.example/": "begins with https://",
		"https://a.example/{pod}": `there is no "{pod}"; want {cluster}`, "https://a.example/{}": `there is no "{}"`, "https://a.example/{name": "a brace is not closed", "https://a.example/}": "a brace is not closed",
		"https:///x": "with a host", "https://u:p@a.example/": "without a user", "https://{name}@a.example/": "without a user", "https://a.example:{name}/": "invalid port",
		"https://a.example/%zz": "invalid URL escape", "https://a.example/" + strings.Repeat("x", longestTemplate): "want at most 2000 bytes", "https://a.example/\n": "want a URL",
	} {
		t.Run(template[:min(len(template), 40)], func(t *testing.T) {
			t.Parallel()
			if _, err := ParseTemplate(template); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

// TestElsewhere: a workload without pods has no dashboard and no logs, and one that has ended has
// its logs.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	template, err := ParseTemplate("https://a.example/{name}")
	if err != nil {
		t.Fatal(err)
	}
	both := Elsewhere{Dashboard: template, Logs: template}
	dashboard, logs := External{"Ray dashboard", "https://a.example/train"}, External{"Logs", "https://a.example/train"}
	for name, c := range map[string]struct {
		of      Elsewhere
		kind    string
		phase   workload.Phase
		started bool
		want    []External
	}{
		"waits":                {both, "RayJob", workload.Queued, false, nil},
		"runs":                 {both, "RayJob", workload.Running, true, []External{dashboard, logs}},
		"is dispatched":        {both, "RayCluster", workload.Dispatched, true, []External{dashboard, logs}},
		"has failed":           {both, "RayJob", workload.Failed, true, []External{logs}},
		"waits again":          {both, "RayJob", workload.Queued, true, nil},
		"ended without pods":   {both, "RayJob", workload.Cancelled, false, nil},
		"is no object of Ray":  {both, "AppWrapper", workload.Running, true, nil},
		"without templates":    {Elsewhere{}, "RayJob", workload.Running, true, nil},
		"with logs alone runs": {Elsewhere{Logs: template}, "RayJob", workload.Running, true, []External{logs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := workload.Record{Workload: workload.Workload{Kind: c.kind, Name: "train"}, Phase: c.phase}
			if c.started {
				r.Times.Dispatched = time.Unix(1, 0)
			}
			if diff := cmp.Diff(c.want, c.of.of(&r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
